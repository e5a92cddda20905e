// The time that a page shows: at the end of what is known, or wound back, or running at a speed of
// its own.

import { History } from "./history";

export const SPEEDS = [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1];

export class Clock {
  time = 0;
  following = true; // the end of what is known
  playing = false;
  speed = 1; // seconds of the stream per second

  // A run of a few hundred microseconds is shown in about ten seconds.
  setNaturalSpeed(span: number): void {
    const wanted = span / 1e9 / 10;
    this.speed = SPEEDS.reduce((best, s) =>
      Math.abs(Math.log(s / wanted)) < Math.abs(Math.log(best / wanted)) ? s : best, 1);
  }
  faster(steps: number): void {
    const at = SPEEDS.findIndex((s) => s >= this.speed * 0.999);
    this.speed = SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, at + steps))];
  }
  advance(history: History, elapsedMs: number): void {
    const last = history.lastTime;
    if (this.following) {
      this.time = last;
      return;
    }
    if (!this.playing) return;
    this.time += elapsedMs * 1e6 * this.speed;
    if (this.time >= last) {
      this.time = last;
      this.playing = false;
      this.following = history.header.live && !history.ended;
    }
  }
  seek(history: History, time: number): void {
    const first = history.frames[0]?.at ?? 0;
    this.following = false;
    this.time = Math.min(history.lastTime, Math.max(history.moves.length > 0 ? 0 : first, time));
  }
  toggle(history: History): void {
    if (this.following || this.time >= history.lastTime) this.seek(history, 0);
    this.playing = !this.playing;
    this.following = false;
  }
  get text(): string {
    if (this.following) return "live";
    const slower = 1 / this.speed;
    return slower >= 1e6 ? `1 s shows ${Math.round(this.speed * 1e9)} ns`
      : slower >= 1e3 ? `1 s shows ${Math.round(this.speed * 1e6)} us`
      : slower > 1.5 ? `1 s shows ${Math.round(this.speed * 1e3)} ms` : "real time";
  }
}
