// The page of `mrc view`.

import { Page } from "./page";
import { ServerSource } from "./source";

declare global {
  interface Window { mrcPage?: Page }
}

window.mrcPage = new Page(new ServerSource());
