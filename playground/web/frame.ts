// Inside the frame of one side: the page of `mrc view` on the run that the frame around it has.

import { Page } from "../../pages/page";
import { Source } from "../../pages/source";

export interface Drawing {
  page: Page;
}

export function show(): void {
  const outside = window.parent as unknown as { mrcSource(name: string): Source };
  const inside = window as unknown as { mrcDrawing: Drawing };
  inside.mrcDrawing = { page: new Page(outside.mrcSource(window.name)) };
}
