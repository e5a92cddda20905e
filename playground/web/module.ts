// The WebAssembly module as an object: one instance is one run of the simulator. Works in a page, in
// a worker and in node; see module/module.cc for what the calls mean.

/** What the user asked for cannot be done; the text is one line for him. */
export class InputError extends Error {}

interface Exports {
  memory: WebAssembly.Memory;
  __stack_pointer: WebAssembly.Global;
  _initialize(): void;
  input(size: number): number;
  start(): void;
  advance(untilNs: number): number;
  packet_hops(): number;
  running_s(): number;
  add_fault(): number;
  end_fault(fault: number): void;
  print_faults(): void;
  film(moves: number): void;
  finish(): void;
}

/** Codes of WASI, the few calls of an operating system that the C library makes. */
const kSuccess = 0;
const kBadDescriptor = 8;
const kNoSystemCall = 52;

export class Run {
  private readonly exports: Exports;
  private printed = "";
  private readonly decoder = new TextDecoder();

  constructor(module: WebAssembly.Module, onLine: (line: string) => void) {
    const wasi: Record<string, (...words: number[]) => number> = {
      fd_write: (descriptor, vectors, count, written) =>
        this.write(descriptor, vectors, count, written),
      clock_time_get: (_clock, _precision, at) => this.tellTime(at),
      proc_exit: (code) => {
        throw new Error(`the module ended itself with ${code}`);
      },
      fd_close: () => kBadDescriptor,
      fd_fdstat_get: () => kBadDescriptor,
      fd_seek: () => kBadDescriptor,
    };
    const page = {
      line: (at: number, size: number) => onLine(this.text(at, size)),
      fail: (at: number, size: number) => {
        throw new InputError(this.text(at, size));
      },
    };
    const imports: Record<string, WebAssembly.ModuleImports> = { page, wasi_snapshot_preview1: {} };
    for (const wanted of WebAssembly.Module.imports(module)) {
      if (wanted.module === "page") continue;
      imports[wanted.module][wanted.name] = wasi[wanted.name] ?? (() => kNoSystemCall);
    }
    this.exports = new WebAssembly.Instance(module, imports).exports as unknown as Exports;
    this.exports._initialize();
  }

  /** `settings` are those of `mrc sim`, one to a line, name=value. Throws InputError. */
  start(settings: string): void {
    this.call(() => {
      this.give(settings);
      this.exports.start();
    });
  }

  /** False when nothing is left to do. */
  advance(untilNs: number): boolean {
    return this.call(() => this.exports.advance(untilNs)) !== 0;
  }

  /** Returns the number of the fault and how it stands in the plan. Throws InputError. */
  addFault(what: string): { fault: number; text: string } {
    this.printed = "";
    const fault = this.call(() => {
      this.give(what);
      return this.exports.add_fault();
    });
    return { fault, text: this.printed.trim() };
  }

  endFault(fault: number): string {
    this.printed = "";
    this.call(() => this.exports.end_fault(fault));
    return this.printed.trim();
  }

  faults(): string[] {
    this.printed = "";
    this.call(() => this.exports.print_faults());
    return this.printed.split("\n").filter((line) => line !== "");
  }

  film(moves: number): void {
    this.exports.film(moves);
  }

  /** The result, as `mrc sim --json` prints it. */
  finish(): string {
    this.printed = "";
    this.call(() => this.exports.finish());
    return this.printed;
  }

  get packetHops(): number {
    return this.exports.packet_hops();
  }

  get runningS(): number {
    return this.exports.running_s();
  }

  /** An exception leaves the stack of the module where it was; the next call begins at its top. */
  private call<T>(work: () => T): T {
    const top: number = this.exports.__stack_pointer.value;
    try {
      return work();
    } catch (error) {
      this.exports.__stack_pointer.value = top;
      if (error instanceof InputError) throw error;
      throw new Error(
        error instanceof WebAssembly.RuntimeError
          ? `the simulation stopped (${error.message}); it may need more memory than a page has`
          : String(error),
      );
    }
  }

  private give(text: string): void {
    const bytes = new TextEncoder().encode(text);
    const at = this.exports.input(bytes.length);
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
  }

  private text(at: number, size: number): string {
    return this.decoder.decode(new Uint8Array(this.exports.memory.buffer, at, size));
  }

  private write(descriptor: number, vectors: number, count: number, written: number): number {
    if (descriptor !== 1 && descriptor !== 2) return kBadDescriptor;
    const memory = new DataView(this.exports.memory.buffer);
    let total = 0;
    for (let i = 0; i < count; ++i) {
      const at = memory.getUint32(vectors + 8 * i, true);
      const size = memory.getUint32(vectors + 8 * i + 4, true);
      this.printed += this.text(at, size);
      total += size;
    }
    memory.setUint32(written, total, true);
    return kSuccess;
  }

  private tellTime(at: number): number {
    const ns = BigInt(Math.round(performance.now() * 1e6));
    new DataView(this.exports.memory.buffer).setBigUint64(at, ns, true);
    return kSuccess;
  }
}
