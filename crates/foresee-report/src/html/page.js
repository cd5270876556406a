"use strict";
// All text of a trace is put into the page by textContent and attributes, never as markup.
const report = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const findings = report.analyses.flatMap((analysis) => analysis.findings).sort((a, b) => a.id - b.id);
const ROW = 24, LEFT = 56, HEAD = 26, NARROWEST = 120;

/** An element with attributes and children; a string child is text. */
function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "line", "path", "rect", "circle", "text", "title"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}
const cut = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);
/** A step that is cut at the beginning of what it is about: the end of a name, and the value, say most. */
function cutStep(text, length) {
  const open = text.indexOf("(") + 1;
  if (text.length <= length || open === 0 || open > length / 2) return cut(text, length);
  return text.slice(0, open) + "…" + text.slice(text.length - (length - open - 1));
}
const place = (frame) => [frame.file, frame.line].filter((part) => part !== undefined).join(":") + (frame.function ? ` (${frame.function})` : "");
const stepsOf = (finding) => (finding.witness && finding.witness.steps) || [];

/** The place of a step or site, with its source if it is at hand. */
function source(frames) {
  const frame = (frames || []).find((frame) => frame.file && frame.line);
  const snippet = frame && (report.sources || {})[`${frame.file}:${frame.line}`];
  if (!snippet) return null;
  const pre = make("pre", { title: place(frame) });
  snippet.lines.forEach((line, i) => {
    const number = snippet.first + i;
    const text = `${String(number).padStart(5)}  ${line}\n`;
    pre.append(number === frame.line ? make("span", { class: "here" }, text) : text);
  });
  return pre;
}

/** What a step does to the threads after it: causes, locks and values. */
function analyse(steps) {
  const threads = [...new Set(steps.map((step) => step.thread.name))];
  const edges = [], locks = [], lastOf = {}, lastWrite = {}, reads = {}, released = {}, forked = {}, taken = {};
  steps.forEach((step, i) => {
    const thread = step.thread.name, target = step.target && step.target.name, op = step.op;
    const from = (j) => { if (j !== undefined && steps[j].thread.name !== thread) edges.push([j, i]); };
    if (step.is_next) return;
    if (lastOf[thread] === undefined) from(forked[thread]);
    const kind = step.target && step.target.kind;
    if (kind === "variable") {
      const writes = op !== "r", key = target;
      from(lastWrite[key]);
      if (writes) { (reads[key] || []).forEach(from); lastWrite[key] = i; reads[key] = []; }
      if (op === "r" || op === "rmw") (reads[key] = reads[key] || []).push(i);
    } else if (kind === "lock") {
      if (op === "acq" || op === "racq") {
        from(released[target]);
        // Who had it before has released it, by a step that is not shown.
        for (const [key, hold] of Object.entries(taken)) {
          const [holder, lock] = key.split("\n");
          if (lock !== target || holder === thread || (hold.shared && op === "racq")) continue;
          locks.push({ thread: holder, lock, from: hold.since, to: lastOf[holder] });
          delete taken[key];
        }
        taken[`${thread}\n${target}`] = { since: i, shared: op === "racq" };
      }
      if (op === "rel" || op === "rrel") {
        const hold = taken[`${thread}\n${target}`];
        locks.push({ thread, lock: target, from: hold === undefined ? -1 : hold.since, to: i });
        delete taken[`${thread}\n${target}`];
        released[target] = i;
      }
    } else if (op === "fork") forked[target] = i;
    else if (op === "join") from(lastOf[target]);
    lastOf[thread] = i;
  });
  for (const [key, hold] of Object.entries(taken)) {
    const [thread, lock] = key.split("\n");
    locks.push({ thread, lock, from: hold.since, to: steps.length });
  }
  return { threads, edges, locks };
}

/** The width that a diagram of these threads may take, and whether two have room beside each other with readable labels. */
function room(threads) {
  const wide = window.matchMedia("(min-width: 60rem)").matches;
  const all = window.innerWidth - (wide ? 400 : 60) - LEFT - 20, half = (window.innerWidth - 400) / 2 - LEFT - 20;
  const beside = wide && threads.length * NARROWEST <= half;
  return { beside, width: beside ? half : all };
}

/** A space-time diagram that draws only the rows that can be seen. */
class View {
  constructor(title, steps, threads, finding, pick) {
    Object.assign(this, { steps, finding, pick, now: 0 });
    const { edges, locks } = analyse(steps);
    Object.assign(this, { edges, locks, threads });
    this.lane = Math.max(NARROWEST, Math.min(230, Math.floor(room(threads).width / threads.length)));
    this.width = LEFT + threads.length * this.lane + 10;
    this.height = HEAD + (steps.length + 1) * ROW;
    this.svg = make("svg", { width: this.width, height: this.height, role: "img", "aria-label": title });
    this.scroll = make("div", { class: "scroll", tabindex: "0", onscroll: () => this.draw() }, this.svg);
    this.node = make("div", { class: "view" }, make("h3", {}, title), this.scroll);
  }
  x(thread) { return LEFT + this.threads.indexOf(thread) * this.lane + 12; }
  y(i) { return HEAD + i * ROW + ROW / 2; }
  show(event, visible) {
    this.now = this.steps.findIndex((step) => step.event === event);
    this.done = visible;
    const y = this.y(this.now), top = this.scroll.scrollTop, height = this.scroll.clientHeight;
    if (y < top + HEAD + ROW) this.scroll.scrollTop = y - HEAD - ROW;
    else if (y > top + height - 2 * ROW) this.scroll.scrollTop = y - height + 2 * ROW;
    this.draw();
  }
  draw() {
    const top = this.scroll.scrollTop, height = this.scroll.clientHeight || 600;
    const first = Math.max(0, Math.floor((top - HEAD) / ROW) - 4);
    const last = Math.min(this.steps.length - 1, Math.ceil((top + height) / ROW) + 4);
    const parts = [];
    for (const thread of this.threads) parts.push(make("line", { class: "lane", x1: this.x(thread), x2: this.x(thread), y1: HEAD, y2: this.height }));
    for (const lock of this.locks.filter((lock) => lock.to >= first && lock.from <= last)) {
      const y = this.y(Math.max(lock.from, first - 1)), end = this.y(Math.min(lock.to, last + 1, this.steps.length - 1));
      parts.push(make("rect", { class: "lock", x: this.x(lock.thread) - 8, width: 16, rx: 4, y: y - 8, height: Math.max(end - y + 16, 16) }, make("title", {}, `${lock.thread} holds ${lock.lock}`)));
    }
    for (const [from, to] of this.edges.filter(([from, to]) => to >= first && from <= last)) {
      const a = this.x(this.steps[from].thread.name), b = this.x(this.steps[to].thread.name), y = this.y(from), z = this.y(to);
      // Below the label of the cause, down beside the lane of the effect, and to it: no label is there.
      parts.push(make("path", { class: "edge", d: `M${a} ${y}V${y + ROW / 2}H${b - 14}V${z}H${b - 5}` }));
    }
    const violated = this.finding.witness && this.finding.witness.violated_at;
    const bad = violated === undefined ? undefined : (this.finding.witness.order || [])[violated - (this.finding.witness.observed || 0)];
    for (let i = first; i <= last; i++) {
      const step = this.steps[i], x = this.x(step.thread.name), y = this.y(i);
      const classes = ["step"];
      if (this.done && !this.done.has(step.event)) classes.push("future");
      if (i === this.now) classes.push("now");
      if (step.is_next || (step.event === bad && !(this.finding.witness.next || []).length)) classes.push("bad");
      else if (step.overtakes !== undefined) classes.push("overtakes");
      const told = `event ${step.event}, ${step.thread.name}: ${step.step}\n` + (step.frames || []).map(place).join("\n") + (step.is_next ? "\nabout to happen" : "") + (step.overtakes === undefined ? "" : `\nhappens before event ${step.overtakes}, which was observed before it`);
      parts.push(make("g", { class: classes.join(" "), onclick: () => this.pick(step.event), "data-event": step.event },
        make("title", {}, told),
        make("rect", { x: 0, y: y - ROW / 2, width: this.width, height: ROW }),
        make("text", { class: "number", x: 6, y: y + 3 }, String(step.event)),
        make("circle", { cx: x, cy: y, r: 5 }),
        make("text", { x: x + 12, y: y + 4 }, cutStep(step.step, Math.floor((this.lane - 30) / 7.3)))));
    }
    const head = [make("rect", { class: "head", x: 0, y: top, width: this.width, height: HEAD })];
    for (const thread of this.threads) head.push(make("text", { class: "name", x: this.x(thread) - 6, y: top + 17 }, cut(thread, Math.floor((this.lane - 10) / 7.3)), make("title", {}, thread)));
    this.svg.replaceChildren(...parts, ...head);
  }
}

/** A finding, played step by step. */
class Player {
  constructor(finding) {
    this.steps = stepsOf(finding);
    this.finding = finding;
    const threads = [...new Set(this.steps.map((step) => step.thread.name))];
    const pick = (event) => this.go(this.steps.findIndex((step) => step.event === event));
    const observed = [...this.steps].sort((a, b) => a.event - b.event).map((step) => ({ ...step, step: step.step.replace(/=\?$/, ""), is_next: false, overtakes: undefined }));
    this.views = [new View("A schedule that shows it", this.steps, threads, finding, pick)];
    this.observed = new View("The same events as observed", observed, threads, { witness: {} }, pick);
    this.views.push(this.observed);
    this.output = make("output", {});
    this.playing = make("button", { type: "button", onclick: () => this.play(), title: "Play (space)" }, "Play");
    const button = (text, title, go) => make("button", { type: "button", title, onclick: go }, text);
    this.beside = make("button", { type: "button", "aria-pressed": "true", title: "Show the observed order beside it (o)", onclick: () => this.toggle() }, "Observed order");
    this.state = make("div", { id: "state" });
    this.both = make("div", { class: room(threads).beside ? "views" : "views stacked" }, ...this.views.map((view) => view.node));
    this.node = make("section", { "aria-label": "Schedule" },
      make("div", { class: "controls" },
        button("|◀", "First step (Home)", () => this.go(0)),
        button("◀", "Step back (←)", () => this.go(this.now - 1)),
        this.playing,
        button("▶", "Step (→)", () => this.go(this.now + 1)),
        button("▶|", "Last step (End)", () => this.go(this.steps.length - 1)),
        this.beside, this.output),
      this.both, this.state,
      make("p", { class: "legend" }, "Filled circles happen before something that was observed before them; red is where it goes wrong; bars are locks held; lines are causes. Keys: ← → Home End, space plays, o toggles the observed order, n and p go to the next and previous finding, / searches."));
    this.now = 0;
  }
  toggle() {
    const hidden = !this.observed.node.hidden;
    this.observed.node.hidden = hidden;
    this.beside.setAttribute("aria-pressed", String(!hidden));
    this.go(this.now);
  }
  play() {
    if (this.timer) { clearInterval(this.timer); this.timer = undefined; }
    else {
      if (this.now >= this.steps.length - 1) this.go(0);
      this.timer = setInterval(() => (this.now < this.steps.length - 1 ? this.go(this.now + 1) : this.play()), 600);
    }
    this.playing.textContent = this.timer ? "Pause" : "Play";
  }
  stop() { if (this.timer) this.play(); }
  go(i) {
    this.now = Math.max(0, Math.min(this.steps.length - 1, i));
    const step = this.steps[this.now];
    if (!step) return;
    const done = new Set(this.steps.slice(0, this.now + 1).map((step) => step.event));
    for (const view of this.views) if (!view.node.hidden) view.show(step.event, done);
    this.output.textContent = `step ${this.now + 1} of ${this.steps.length}, event ${step.event}: ${step.thread.name} ${step.is_next ? "is about to do " : "does "}${step.step}`;
    const values = {}, held = {};
    for (const past of this.steps.slice(0, this.now + 1)) {
      if (past.is_next || !past.target) continue;
      const at = past.step.indexOf(")=");
      if (past.target.kind === "variable" && at >= 0) values[past.target.name] = past.step.slice(at + 2).split("->").pop();
      if (past.target.kind === "lock") {
        const key = `${past.thread.name} holds ${past.target.name}`, shared = past.op === "racq";
        // Who had it before has released it, by a step that is not shown.
        for (const [other, hold] of Object.entries(held)) {
          if (past.op.endsWith("acq") && hold.lock === past.target.name && !(shared && hold.shared)) delete held[other];
        }
        if (past.op.endsWith("acq")) held[key] = { lock: past.target.name, shared }; else delete held[key];
      }
    }
    const rows = Object.entries(values).slice(0, 200).map(([name, value]) => make("tr", {}, make("td", { class: "mono" }, cut(name, 80)), make("td", { class: "mono" }, cut(value, 80))));
    const from = (report.trace.events && this.steps[0].event > 0) ? "since the first step shown" : "so far";
    this.state.replaceChildren(
      make("div", {}, make("h3", {}, "Source"), source(step.frames) || make("p", { class: "legend" }, (step.frames || []).map(place).join(" ← ") || "The place is not known.")),
      make("div", {}, make("h3", {}, `Values seen ${from}`), rows.length ? make("table", {}, ...rows) : make("p", { class: "legend" }, "None."),
        ...Object.keys(held).map((text) => make("p", { class: "mono" }, text))));
  }
}

let player, current;
const OUTCOMES = { exhausted: "complete", window: "not all runs" };
const outcome = (analysis) => (analysis.name === "observed" ? "this run only" : OUTCOMES[analysis.outcome] || analysis.outcome);

function sites(finding) {
  const rows = finding.sites.map((site) => make("tr", {},
    make("th", {}, site.role),
    make("td", {}, make("code", {}, cut(site.step || "", 200)), ` by ${site.thread ? site.thread.name : "?"}`,
      ...(site.frames || []).map((frame) => make("div", { class: "mono" }, `${frame.inlined ? "inlined " : ""}${place(frame)}`)),
      ...(site.locks || []).map((lock) => make("div", {}, `holds ${lock.name}${lock.shared ? " (shared)" : ""}, taken by event ${lock.event}${lock.frames.length ? " at " + place(lock.frames[0]) : ""}`)),
      site.thread && site.thread.forked ? make("div", { class: "legend" }, `started by ${site.thread.forked.by}${site.thread.forked.frames.length ? " at " + place(site.thread.forked.frames[0]) : ""}`) : null)));
  return make("table", {}, ...rows);
}

/** Sites that explain a finding, but do not say what it is about. */
const EXPLAINING = ["notification", "also-waits", "observed-write", "other-write", "step", "state", "relaxed-write", "relaxed-read", "condition", "last-seen"];

/** What the finding of a check is about, as the text report says it. */
function subject(finding) {
  if (finding.verdict === "violated") return "";
  const kinds = ["variable", "object"], about = (finding.about || []).find((about) => kinds.includes(about.kind));
  const site = finding.sites.find((site) => site.target && site.target.kind === "variable" && !EXPLAINING.includes(site.role));
  const name = about ? about.name : site && site.target.name;
  return name ? ` on ${cut(name, 60)}` : "";
}

function show(finding, keep) {
  if (player) player.stop();
  player = undefined;
  current = finding;
  for (const button of byId("list").querySelectorAll("button")) button.setAttribute("aria-current", String(button.dataset.id === String(finding.id)));
  const parts = [
    make("h2", {}, make("span", { class: `kind ${finding.kind}` }, finding.kind), ` ${finding.property}${subject(finding)} `, make("small", { class: "fingerprint mono" }, finding.fingerprint || "")),
    make("p", {}, finding.message),
  ];
  if (finding.confirmation) parts.push(make("p", {}, `Replay: ${finding.confirmation}`));
  parts.push(sites(finding));
  const details = Array.isArray(finding.details) ? finding.details.map((detail) => [detail.label, detail.text]) : Object.entries(finding.details || {});
  if (details.length) parts.push(make("details", {}, make("summary", {}, "More"), make("table", {}, ...details.map(([name, text]) => make("tr", {}, make("th", {}, name), make("td", {}, String(text)))))));
  if (stepsOf(finding).length) {
    player = new Player(finding);
    parts.push(player.node);
  }
  for (const drawing of (report.lattices || []).filter((drawing) => drawing.property === finding.property)) {
    parts.push(make("h3", {}, "The lattice of all runs"), make("img", { class: "lattice", alt: `The lattice of ${drawing.property}`, src: drawing.image }));
  }
  parts.push(make("p", { class: "legend" }, report.assumptions));
  byId("finding").replaceChildren(...parts);
  if (player) player.go(player.steps.length - 1);
  if (!keep) location.hash = finding.fingerprint || `finding-${finding.id}`;
}

const filters = { kind: "", property: "", thread: "", variable: "" };
const namesOf = {
  kind: (finding) => [finding.kind],
  property: (finding) => [finding.property],
  thread: (finding) => finding.sites.flatMap((site) => (site.thread ? [site.thread.name] : [])),
  variable: (finding) => [...finding.sites.flatMap((site) => (site.target && site.target.kind === "variable" ? [site.target.name] : [])), ...(finding.about || []).map((about) => about.name)],
};
const haystack = new Map(findings.map((finding) => [finding, JSON.stringify([finding.property, finding.message, finding.rule, finding.fingerprint, finding.sites]).toLowerCase()]));

function matching() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  return findings.filter((finding) => Object.entries(filters).every(([name, value]) => !value || namesOf[name](finding).includes(value)) && words.every((word) => haystack.get(finding).includes(word)));
}

function list() {
  const all = matching();
  byId("list").replaceChildren(...all.map((finding) => make("li", {}, make("button", { type: "button", "data-id": finding.id, onclick: () => show(finding) },
    make("span", { class: `kind ${finding.kind}` }, finding.kind), ` ${cut(finding.property, 60)}`, make("small", {}, finding.message)))));
  byId("none").hidden = all.length > 0 || findings.length === 0;
  if (current) for (const button of byId("list").querySelectorAll("button")) button.setAttribute("aria-current", String(button.dataset.id === String(current.id)));
  return all;
}

function start() {
  const { trace, summary } = report;
  const counts = Object.entries(summary).filter(([, n]) => n).map(([name, n]) => `${n} ${name.replace("_", "-")}`);
  const why = [trace.cut_short, trace.partial].filter(Boolean);
  const complete = report.complete === true;
  byId("verdict").append(`${trace.name}: ${counts.join(", ") || "nothing found"}; `, make("strong", { class: complete ? "complete" : "conditional" }, complete ? "complete" : "not complete"), ` (${trace.events} events, ${trace.threads} threads)`, ...why.map((text) => make("span", { class: "conditional" }, ` ${text}`)));
  document.title = `foresee: ${trace.name}`;
  for (const name of Object.keys(filters)) {
    const values = [...new Set(findings.flatMap(namesOf[name]))].sort();
    if (values.length < 2) continue;
    const select = make("select", { onchange: (event) => { filters[name] = event.target.value; list(); } }, make("option", { value: "" }, "all"), ...values.map((value) => make("option", { value }, cut(value, 60))));
    byId("filters").append(make("label", {}, name, select));
  }
  byId("search").addEventListener("input", list);
  byId("analyses").append(make("h2", {}, "What was looked for"), ...report.analyses.map((analysis) => make("details", {}, make("summary", {}, `${analysis.name}${analysis.property ? " " + analysis.property : ""}: ${outcome(analysis)}`), make("p", {}, analysis.statement), ...(analysis.notes || []).map((note) => make("p", {}, note)))));
  for (const warning of trace.warnings || []) byId("analyses").append(make("p", {}, warning));
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = (value) => document.documentElement.setAttribute("data-theme", value);
  theme(dark ? "dark" : "light");
  const switchTheme = () => theme(document.documentElement.getAttribute("data-theme") === "dark" ? "light" : "dark");
  byId("theme").addEventListener("click", switchTheme);
  list();
  const wanted = decodeURIComponent(location.hash.slice(1));
  const first = findings.find((finding) => finding.fingerprint === wanted || `finding-${finding.id}` === wanted) || findings[0];
  if (first) show(first, true);
  else byId("finding").append(make("h2", {}, "Nothing was found"), make("p", {}, complete ? "The answer is complete for this run." : "The answer is not complete: see what was looked for."));
  window.addEventListener("resize", () => player && player.go(player.now));
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select")) { if (event.key === "Escape") event.target.blur(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const all = matching(), at = all.indexOf(current);
    const keys = {
      ArrowRight: () => player && player.go(player.now + 1), ArrowLeft: () => player && player.go(player.now - 1),
      Home: () => player && player.go(0), End: () => player && player.go(player.steps.length - 1),
      " ": () => player && player.play(), o: () => player && player.toggle(), t: switchTheme,
      n: () => all[at + 1] && show(all[at + 1]), p: () => all[at - 1] && show(all[at - 1]),
      "/": () => byId("search").focus(),
    };
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
  });
}
start();
