// The modules of page.js, each run once when it is first asked for. One classic script, so that a
// page opens from a file as well as from a server.
"use strict";
(() => {
  const known = new Map();
  const ready = new Map();
  const load = (name) => {
    if (ready.has(name)) return ready.get(name);
    const entry = known.get(name);
    if (entry === undefined) throw new Error("no module " + name);
    const exports = {};
    ready.set(name, exports);
    const parts = entry.needs.map((need) =>
      need === "exports" ? exports : need === "require" ? load : load(need));
    entry.make(...parts);
    return exports;
  };
  self.define = (name, needs, make) => known.set(name, { needs, make });
  self.startPage = (name) => load(name);
})();
