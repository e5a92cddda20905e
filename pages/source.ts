// Where lines come from. A page knows nothing else of it.

// A silent source is there and says nothing; one that is gone may come back; an asleep one is not
// heard while nobody sees the page.
export type SourceState = "connecting" | "open" | "lost" | "done" | "silent" | "gone" | "asleep";
export type Verb = "cut" | "degrade" | "loss" | "flap" | "heal";

export interface Source {
  start(sink: (line: string) => void, tell: (state: SourceState, why: string) => void): void;
  stop(): void;
  // Breaks or heals something; resolves with what was done, rejects with why not.
  act?(verb: Verb, target: string, value: string): Promise<string>;
}

// For the answer to a deed; the server has a limit of its own, which is shorter.
const ACT_MS = 10_000;

// Server-sent events of `mrc view`, from the address the page came from.
//
// Browsers have six connections to one server, for all tabs together: a tab that nobody sees gives
// its stream back, and begins anew when it is seen.
export class ServerSource implements Source {
  private events: EventSource | null = null;
  private over = false;

  start(sink: (line: string) => void, tell: (state: SourceState, why: string) => void): void {
    document.addEventListener("visibilitychange", () => this.follow(sink, tell));
    this.follow(sink, tell);
  }

  private follow(sink: (line: string) => void, tell: (state: SourceState, why: string) => void): void {
    if (this.over) return;
    if (document.visibilityState === "hidden") {
      this.close();
      tell("asleep", "");
    } else if (this.events === null) {
      this.open(sink, tell);
    }
  }

  private open(sink: (line: string) => void, tell: (state: SourceState, why: string) => void): void {
    tell("connecting", "");
    const events = new EventSource("stream");
    this.events = events;
    events.onopen = () => tell("open", "");
    events.onmessage = (event: MessageEvent<string>) => {
      sink(event.data);
      // Nothing more comes, and the server need not be asked again.
      if (event.data.startsWith('{"end":')) {
        this.stop();
        tell("done", "");
      }
    };
    events.onerror = () => {
      if (this.events !== events) return;
      tell("lost", "the server does not answer; trying again");
      if (events.readyState === EventSource.CLOSED) {
        events.close();
        window.setTimeout(() => { if (this.events === events) this.open(sink, tell); }, 1000);
      }
    };
  }

  stop(): void {
    this.over = true;
    this.close();
  }
  private close(): void {
    this.events?.close();
    this.events = null;
  }

  async act(verb: Verb, target: string, value: string): Promise<string> {
    const patience = new AbortController();
    const late = window.setTimeout(() => patience.abort(), ACT_MS);
    try {
      return await this.ask(JSON.stringify({ verb, target, value }), patience.signal);
    } catch (error) {
      if (!patience.signal.aborted) throw error;
      throw new Error(`${verb} ${target}: no answer for ${ACT_MS / 1000} s; is this page open in `
        + "more than five windows?");
    } finally {
      window.clearTimeout(late);
    }
  }

  private async ask(body: string, signal: AbortSignal): Promise<string> {
    const answer = await fetch("act", {
      method: "POST",
      signal,
      headers: { "Content-Type": "application/json" },
      body,
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text.trim());
    return text.trim();
  }
}
