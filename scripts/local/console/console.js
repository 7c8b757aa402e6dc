// The live page: follows /feed, and shows the picture that it has last, once per animation
// frame. The shapes of pictures, orders and timelines are those of package watch.
// Text from the server is always set as text, never as HTML.

const SHOWN_ORDERS = 40, SHOWN_DOTS = 18, SHOWN_WORK = 2, SHOWN_LETTERS = 50;
const ANNOUNCED = 4; // lines of the log a second that are read aloud

/** Steps of an order's protocol that every new order passes. */
const STEPS = ["claim", "prepare", "bind", "confirm", "finish"];

/** Symbols beside the words of statuses and states, so that nothing depends on color. */
const SYMBOLS = {
  open: "◔", paid: "✓", declined: "✕", canceled: "⊘", action_required: "!", pending: "◷", refused: "✕",
  out_of_stock: "○", partially_refunded: "↶", refunded: "↶",
  idle: "○", working: "▶", frozen: "❄", killed: "✕", timed_out: "◷", ended: "■",
  twice: "⚠", none: "–",
};

/** @type {(selector: string) => any} */
const one = (selector) => document.querySelector(selector);
/** @type {(id: string) => any} */
const byId = (id) => document.getElementById(id);
const words = (s) => s.replaceAll("_", " ");
const count = (n) => n.toLocaleString("en-US");

const many = (n, single, more = `${single}s`) => `${count(n)} ${n === 1 ? single : more}`;

/* ---- The model ---- */

/** The picture of the server, which replaces it again and again. */
const model = {
  ahead: "", queue: { waiting: 0, inFlight: 0 }, instances: [], orders: [], totals: { rows: [], orders: 0, twice: 0 },
  lights: [], log: [], dead: [], faults: [], control: { version: "", storm: false, slowSteps: false },
};

const orderOf = (id) => model.orders.find((o) => o.id === id);
const isBroken = (order) => order.charges > 1 || order.bad?.length > 0;

/** The orders that are shown: broken ones first, then the newest. */
function shownOrders() {
  const orders = model.orders.toSorted((a, b) => Number(isBroken(b)) - Number(isBroken(a)) || b.n - a.n);
  return orders.slice(0, SHOWN_ORDERS);
}

/* ---- The document ---- */

/** Makes an element. An attribute whose value is undefined is left out. */
function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  setAll(node, attributes);
  node.append(...children);
  return node;
}

function setAll(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
}

/** Sets or removes an attribute, if it differs. */
function set(node, name, value) {
  if (value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

const nodesOf = new WeakMap();

/**
 * Makes the children of parent follow items: one child per key, in the same order. A child
 * that stays is not moved as long as the order of those that stay is the same.
 */
function follow(parent, items, key, create, update) {
  const before = nodesOf.get(parent) ?? new Map(), after = new Map();
  for (const item of items) after.set(key(item), before.get(key(item)));
  for (const [k, node] of before) if (!after.has(k)) node.remove();
  let next = parent.firstElementChild;
  for (const item of items) {
    const known = after.get(key(item)), node = known ?? create(item);
    after.set(key(item), node);
    update(node, item);
    if (node === next) next = next.nextElementSibling;
    else parent.insertBefore(node, next);
  }
  nodesOf.set(parent, after);
}

function chip(node, name, word = words(name)) {
  set(node, "data-chip", name);
  text(node, `${SYMBOLS[name] ?? "•"} ${word}`.trim());
}

const seconds = (until) => Math.max(0, Math.ceil((until - Date.now()) / 1000));

/* ---- Stations ---- */

function renderCounts() {
  const values = { ...model.totals, dead: model.dead.length };
  for (const [name, value] of Object.entries(model.queue)) values[`queue.${name}`] = value;
  for (const node of document.querySelectorAll("[data-count]")) {
    text(node, count(values[node.dataset.count ?? ""] ?? 0));
  }
  byId("picture").classList.toggle("charged-twice", model.totals.twice > 0);
}

function renderQueue() {
  const { waiting, inFlight } = model.queue;
  for (const [name, n] of [["waiting", waiting], ["in_flight", inFlight]]) {
    const dots = one(`[data-queue="${name}"] .dots`);
    const shown = Math.min(Number(n), SHOWN_DOTS);
    while (dots.childElementCount > shown) dots.lastElementChild?.remove();
    while (dots.childElementCount < shown) dots.append(make("i"));
    dots.classList.toggle("full", Number(n) > SHOWN_DOTS);
  }
}

function renderInstances() {
  follow(byId("instances"), model.instances, (i) => i.n,
    () => make("li", {}, make("p", {}, make("b"), make("span"), make("em")), make("ul")),
    (node, i) => {
      setAll(node, { "data-instance": i.n, "data-state": i.state, "data-broken": i.broken || undefined });
      const [name, state, broken] = node.firstElementChild.children;
      text(name, i.version === model.control.version ? `#${i.n}` : `#${i.n} ${i.version}`);
      chip(state, i.state, i.state === "working" ? "" : undefined);
      text(broken, i.broken ? `no ${i.broken}` : "");
      follow(node.lastElementChild, workOf(i), (w) => w.order,
        () => make("li", {}, make("span"), make("b")), renderWork);
    });
}

/** The orders of an instance, or how many are at which step if it has a large batch. */
function workOf(instance) {
  const work = instance.work ?? [];
  if (work.length <= SHOWN_WORK) return work;
  const steps = Map.groupBy(work, (w) => w.step ?? "");
  return [...steps].map(([step, those]) => ({ order: `${those.length} ×`, step: step || "start" }));
}

function renderWork(node, work) {
  set(node, "data-step", work.step || undefined);
  text(node.firstElementChild, work.order);
  text(node.lastElementChild, work.step);
}

function renderRows() {
  const create = () => make("li", {}, make("span"), make("b"));
  follow(byId("rows"), model.totals.rows ?? [], (r) => r.status, create, (node, r) => {
    chip(node.firstElementChild, r.status);
    text(node.lastElementChild, count(r.orders));
  });
}

function renderDead() {
  byId("dead").classList.toggle("some", model.dead.length > 0);
  const newest = model.dead.slice(-SHOWN_LETTERS).reverse(), create = () => make("li", {}, make("b"), make("span"));
  follow(byId("letters"), newest, (d) => d.message, create, (node, d) => {
    setAll(node, { "data-dead": d.message, "data-reason": d.reason });
    text(node.firstElementChild, d.reason);
    text(node.lastElementChild, d.order ?? "");
  });
}

function renderFaults() {
  follow(byId("faults"), model.faults, (f) => f.text, () => make("li", { "data-fault": "" }), (node, f) => {
    text(node, f.until ? `${f.text}, ${seconds(f.until)} s left` : f.text);
  });
}

/* ---- Orders ---- */

function renderOrders() {
  const shown = shownOrders(), more = Math.max(0, model.totals.orders - shown.length);
  follow(byId("rowgroup"), shown, (o) => o.id, createOrder, renderOrder);
  text(byId("more"), more > 0 ? `${shown.length} shown: broken ones, then the newest; ${count(more)} more` : "");
  byId("empty").hidden = shown.length > 0;
  renderResult();
}

function renderResult() {
  const result = document.querySelector("#answer [data-result]"), o = result && orderOf(result.dataset.result);
  if (o) renderStatus(result, o);
}

function createOrder(order) {
  const steps = make("ol", { class: "steps", "aria-hidden": "true" });
  steps.append(...STEPS.map((s) => make("li", { "data-is": s }, s)));
  const track = make("span", { class: "track", "aria-hidden": "true" }, make("i", { class: "runner" }));
  const button = make("button", { type: "button", "aria-haspopup": "dialog" }, order.id);
  const cell = (name, ...children) => make("span", { role: "cell", class: name }, ...children);
  return make("div", { role: "row", "data-order": order.id },
    cell("id", button, make("small")), cell("now", steps, make("span", { class: "note" })),
    cell("deliveries"), cell("charges"), cell("status", make("span")), track);
}

function renderOrder(node, o) {
  setAll(node, {
    "data-status": o.status ?? "", "data-message": o.message, "data-place": o.place, "data-step": o.step ?? "",
    "data-charges": o.charges, "data-deliveries": o.deliveries, "data-look": lookOf(o),
  });
  const [id, now, deliveries, charges, status] = node.children;
  text(id.lastElementChild, o.amount ?? "");
  for (const step of now.firstElementChild.children) step.classList.toggle("current", step.dataset.is === o.step);
  now.firstElementChild.hidden = !isRunning(o) || isBroken(o); // its note needs the room
  text(now.lastElementChild, noteOf(o));
  set(now.lastElementChild, "title", noteOf(o));
  text(deliveries, many(o.deliveries, "delivery", "deliveries"));
  text(charges, many(o.charges, "charge"));
  renderStatus(status.firstElementChild, o);
}

function renderStatus(node, o) {
  if (o.charges > 1) chip(node, "twice", timesCharged(o));
  else if (isBroken(o)) chip(node, "twice", "broken");
  else chip(node, o.status || "none", o.status ? undefined : "no row");
}

const isRunning = (o) => ["function", "table", "stripe"].includes(o.place);
const timesCharged = (o) => (o.charges === 2 ? "charged twice" : `charged ${o.charges} times`);

function lookOf(o) {
  if (isBroken(o)) return "broken";
  if (o.place === "dead") return "dead";
  if (o.place === "settled") return "settled";
  return o.place === "queue" ? "waiting" : "running";
}

/** What an order waits for, or what happened to it last. */
function noteOf(o) {
  if (o.bad?.length) return o.bad[0];
  if (o.place === "dead") return o.reason ? `dead letter: ${words(o.reason)}` : "dead letter";
  if (isRunning(o)) return o.attempt > 1 ? `attempt ${o.attempt}` : "";
  const waits = [];
  if (o.place === "queue" && seconds(o.visibleAt ?? 0) > 0) waits.push(`returns in ${seconds(o.visibleAt)} s`);
  if (o.place === "queue" && seconds(o.leaseUntil ?? 0) > 0) waits.push(`lease ${seconds(o.leaseUntil)} s`);
  return [...waits, o.note].filter(Boolean).join(" · ");
}

/* ---- What holds, what happened, what is set ---- */

function renderLights() {
  const create = () => make("li", {}, make("i"), make("b"), make("span"), make("ul"));
  const isRed = (l) => l.broken?.length > 0, red = model.lights.filter(isRed);
  text(byId("holds"), red.length ? `${red.length} of ${model.lights.length} broken` : "");
  const lights = [...red, ...model.lights.filter((l) => !isRed(l))]; // what is broken stays in view
  follow(byId("lights"), lights, (l) => l.id, create, (node, l) => {
    const broken = l.broken ?? [];
    setAll(node, { "data-light": l.id, "data-ok": String(broken.length === 0) });
    const [symbol, id, claim, places] = node.children;
    text(symbol, broken.length ? "✕" : "✓");
    set(symbol, "aria-label", broken.length ? "broken" : "holds");
    set(symbol, "role", "img");
    text(id, l.id);
    text(claim, l.claim);
    set(claim, "title", `checked for ${many(l.orders, "order")}`);
    follow(places, broken.slice(0, 3), (b) => b, createPlace, () => {});
  });
}

/** A place where an invariant is broken, with the timeline of the order that it begins with. */
function createPlace(place) {
  const [id] = place.split(/[\s:]/, 1), isKnown = orderOf(id) !== undefined;
  return isKnown ? make("li", {}, openButton(id, id), place.slice(id.length)) : make("li", {}, place);
}

/** When the latest lines were shown, to limit what a screen reader reads aloud. */
let announced = [];
let lastLine = 0;

function renderLog() {
  const now = performance.now(), list = byId("log-lines"), lines = model.log.toReversed();
  const fresh = lines.filter((l) => l.n > lastLine);
  announced = [...announced.filter((t) => now - t < 1000), ...fresh.map(() => now)];
  lastLine = lines[0]?.n ?? 0;
  set(list, "aria-live", model.control.storm || announced.length > ANNOUNCED ? "off" : "polite");
  follow(list, lines, (l) => l.n, createLine, () => {});
}

function createLine(l) {
  const time = make("time", { datetime: new Date(l.at).toISOString() }, clockTime(l.at));
  return make("li", { "data-line": l.n, "data-tone": l.tone }, time, make("span", {}, l.text));
}

const clockTime = (millis) => new Date(millis).toLocaleTimeString("en-GB");

const seed = () => one("input[name=seed]");

/** The control that is shown: what the visitor is about to change stays until it was set. */
let shownControl = "";

function renderControl() {
  text(byId("clock"), model.ahead ? `clocks ${model.ahead} ahead` : "");
  byId("clock").hidden = !model.ahead;
  const c = model.control, content = JSON.stringify(c);
  if (content === shownControl) return;
  shownControl = content;
  const storm = one("button[data-storm]");
  set(document.body, "data-stormy", c.storm ? "true" : undefined);
  set(storm, "data-storm", c.storm ? "stop" : "start");
  text(storm, c.storm ? "Stop the storm" : "Start the storm");
  text(byId("posted"), c.posted ? `${many(c.posted, "order")} posted.` : "");
  seed().disabled = c.storm;
  if (c.storm) seed().value = String(c.seed ?? 0);
  one("input[name=slow]").checked = c.slowSteps;
  text(byId("version"), c.version);
  renderGuard(c.guard ?? "", c.building ?? "");
}

function renderGuard(removed, building) {
  for (const node of document.querySelectorAll("[data-without]")) {
    const name = node.dataset.without;
    set(node, "data-removed", name === removed ? "true" : undefined);
    set(node, "data-building", name === building ? "true" : undefined);
  }
  const banner = byId("broken"), name = building || removed, hadFocus = banner.contains(document.activeElement);
  banner.hidden = name === "";
  if (hadFocus && (banner.hidden || building)) byId("guards").focus(); // its buttons have gone
  set(banner, "data-building", building ? "true" : undefined);
  const entry = document.querySelector(`[data-without="${CSS.escape(name)}"]`);
  if (!name || !entry) return;
  const title = entry.querySelector("button")?.textContent ?? name;
  const state = building ? "Compiling the order function" : "The order function runs";
  text(byId("broken-title"), `${state} without: ${title}`);
  const sentences = entry.querySelector("p")?.textContent ?? "";
  text(byId("broken-text"), building ? "This takes some seconds. Until then, the last version runs." : sentences);
  const attack = entry.dataset.shownBy ?? "", repeat = byId("repeat");
  set(repeat, "data-attack", attack);
  const button = document.querySelector(`.actions [data-attack="${CSS.escape(attack)}"]`);
  text(repeat, `Attack: ${button?.textContent ?? attack}`);
}

/* ---- One rendering per animation frame ---- */

const renderings = [
  renderCounts, renderQueue, renderInstances, renderRows, renderDead, renderFaults, renderOrders, renderLights, renderLog,
  renderControl, renderTimeline,
];

let scheduled = false;

/** Shows the model. Each rendering changes only what differs. */
function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    for (const render of renderings) render();
  });
}

setInterval(schedule, 500); // countdowns change without a frame

/* ---- The feed ---- */

const meta = (name) => one(`meta[name="${name}"]`).content;

function connect() {
  const feed = new EventSource(`/feed?run=${meta("console-run")}`);
  feed.addEventListener("open", () => connected(true));
  feed.addEventListener("error", () => {
    connected(false);
    if (feed.readyState === EventSource.CLOSED) reload(); // the feed is of another start of the system
  });
  feed.addEventListener("picture", (event) => {
    Object.assign(model, JSON.parse(event.data));
    timeline.refresh();
    schedule();
  });
}

/** Loads the page again, once the server answers. */
function reload() {
  fetch("/").then(() => location.reload(), () => setTimeout(reload, 1000));
}

function connected(yes) {
  document.body.dataset.connected = String(yes);
  text(byId("connection"), yes ? "live" : "no connection: is make up running?");
}

/* ---- What the visitor does ---- */

/** Does an act, and shows what was done or why it was not. */
async function post(act, value = "") {
  const answer = byId("answer");
  try {
    const response = await fetch(`/acts/${act}`, {
      method: "POST",
      body: new URLSearchParams({ value }),
      headers: { "X-Console-Token": meta("console-token") },
    });
    const result = await response.json();
    set(answer, "data-tone", response.ok ? "plain" : "bad");
    answer.replaceChildren(response.ok ? result.text : result.error);
    if (result.order) answer.append(" ", make("span", { "data-result": result.order }), " ", openButton(result.order));
    renderResult();
  } catch {
    set(answer, "data-tone", "bad");
    answer.replaceChildren("No answer: is make up running?");
  }
}

function openButton(id, title = `Timeline of ${id}`) {
  return make("button", { type: "button", "data-open": id, "aria-haspopup": "dialog" }, title);
}

/** Runs a request once at a time per button. The button keeps the focus. */
async function press(button, act, value) {
  if (button.getAttribute("aria-busy") === "true") return;
  set(button, "aria-busy", "true");
  await post(act, value);
  set(button, "aria-busy", undefined);
}

document.addEventListener("click", (event) => {
  const target = /** @type {Element} */ (event.target), button = target.closest("button");
  if (button) pressed(button);
  else {
    const order = target.closest("[data-order]");
    if (order) timeline.open(order.dataset.order ?? "");
  }
});

function pressed(button) {
  const { attack, guard, storm, open } = button.dataset, order = button.closest("[data-order]");
  if (attack) press(button, attack);
  else if (guard !== undefined) press(button, "guard", guard);
  else if (storm) press(button, "storm", storm === "start" ? seed().value || "0" : "");
  else if (open || order) timeline.open(open ?? order.dataset.order);
  else if (button.id === "close") timeline.dialog.close();
}

document.addEventListener("change", async (event) => {
  const input = event.target;
  if (input.name !== "slow") return;
  await post("slow", String(input.checked));
  shownControl = ""; // shows what is set, if the request failed
  schedule();
});

/* ---- The timeline of an order ---- */

const timeline = {
  dialog: /** @type {HTMLDialogElement} */ (document.getElementById("timeline")),
  order: "", // "" while the dialog is closed
  shown: null, // the latest answer
  seen: "", // what the model said when the timeline was read
  reading: false,

  open(id) {
    Object.assign(this, { order: id, shown: null, seen: "" });
    set(this.dialog, "data-timeline", id);
    for (const part of ["heads", "entries", "facts", "timeline-bad"]) {
      byId(part).replaceChildren();
      nodesOf.delete(byId(part));
    }
    text(byId("timeline-title"), id);
    text(byId("timeline-status"), "");
    if (!this.dialog.open) this.dialog.showModal();
    this.read();
  },

  /** Reads the timeline again if the order has changed. */
  refresh() {
    const order = orderOf(this.order);
    if (this.order && order && this.seen !== JSON.stringify(order)) this.read();
  },

  async read() {
    const id = this.order;
    if (this.reading || !id) return;
    this.reading = true;
    this.seen = JSON.stringify(orderOf(id));
    try {
      const response = await fetch(`/orders/${encodeURIComponent(id)}`), answer = await response.json();
      if (id === this.order) {
        this.shown = response.ok ? answer : null;
        if (!response.ok) text(byId("timeline-status"), answer.error);
      }
    } catch {
      text(byId("timeline-status"), "No answer: is make up running?");
    }
    this.reading = false;
    schedule();
    if (id === this.order) this.refresh();
    else this.read();
  },
};

timeline.dialog.addEventListener("close", () => {
  if (document.activeElement === document.body) byId("lines").focus(); // the button that opened it has gone
  Object.assign(timeline, { order: "", shown: null });
  timeline.dialog.removeAttribute("data-timeline");
});

timeline.dialog.addEventListener("click", (event) => {
  if (event.target === timeline.dialog) timeline.dialog.close();
});

let shownTimeline = null;

function renderTimeline() {
  if (!timeline.shown || timeline.shown === shownTimeline) return;
  shownTimeline = timeline.shown;
  const { order: o, entries, dropped } = timeline.shown;
  renderStatus(byId("timeline-status"), o);
  follow(byId("timeline-bad"), o.bad ?? [], (b) => b, () => make("li"), text);
  const createFact = ([name]) => make("div", {}, make("dt", {}, name), make("dd"));
  follow(byId("facts"), facts(o), ([name]) => name, createFact, (node, [, value]) => text(node.lastElementChild, value));
  text(byId("dropped"), dropped ? `${count(dropped)} older entries were dropped` : "");
  const node = byId("sequence"), isFirst = byId("entries").childElementCount === 0;
  const wasAtEnd = node.scrollTop + node.clientHeight >= node.scrollHeight - 8;
  renderSequence(entries, dropped ?? 0);
  const isMoving = isRunning(o) || o.place === "queue";
  if (isFirst ? isMoving : wasAtEnd) node.scrollTop = node.scrollHeight; // its end stays in view
}

function facts(o) {
  return [
    ["row", o.status ? words(o.status) : "none"],
    ["attempt (claims)", o.attempt ? String(o.attempt) : "none"],
    ["lease", o.leaseUntil ? `${seconds(o.leaseUntil) ? "ends" : "ended"} at ${clockTime(o.leaseUntil)}` : "none"],
    ["fencing token", o.owner || "none"],
    ["bound intent", o.intent || "none"],
    ["at Stripe", o.stripe ? words(o.stripe) : "nothing"],
    ["charges", String(o.charges)],
    ["message", words(o.message || "none")],
    ["deliveries", `${o.deliveries}, ${o.duplicates ?? 0} of them duplicates`],
    ["events, webhooks, e-mails", `${o.events ?? 0}, ${o.webhooks ?? 0}, ${o.mails ?? 0}`],
  ];
}

const PARTICIPANTS = ["You", "SQS", "Function", "DynamoDB", "Stripe", "Other functions", "EventBridge", "Mailbox"];

function participants(entries) {
  const place = (name) => {
    const i = PARTICIPANTS.indexOf(name.replace(/^Function \d+$/, "Function"));
    return i < 0 ? PARTICIPANTS.length : i;
  };
  const names = [...new Set(entries.flatMap((e) => [e.from, e.to]).filter(Boolean))];
  return names.sort((a, b) => place(a) - place(b) || a.localeCompare(b, "en", { numeric: true }));
}

/** Draws a sequence diagram: a column for each participant, and an arrow for each call and each answer. */
function renderSequence(entries, dropped) {
  const names = participants(entries), first = entries[0]?.at ?? 0;
  byId("sequence").style.setProperty("--columns", String(names.length));
  follow(byId("heads"), names, (name) => name, () => make("li"), text);
  follow(byId("entries"), entries.map((e, i) => ({ e, n: i + dropped })), (x) => x.n,
    (x) => make("li", { "data-entry": String(x.n) }), (node, x) => renderEntry(node, x.e, first, names));
}

function renderEntry(node, e, first, names) {
  const from = names.indexOf(e.from), to = e.to ? names.indexOf(e.to) : from, content = JSON.stringify([e, from, to]);
  if (node.entry === content) return;
  node.entry = content;
  set(node, "data-kind", e.kind);
  const said = e.step && !e.text.startsWith(e.step) ? `${e.step}: ${e.text}` : e.text;
  const who = from === to ? e.from : `${e.from} → ${e.to}`;
  node.replaceChildren(
    make("time", {}, `+${((e.at - first) / 1000).toFixed(2)} s`), make("b", { class: "hidden" }, `${who}: `));
  if (e.kind === "death" || e.kind === "note" || from === to) node.append(draw(from, from, said, "over"));
  else if (e.kind === "lost" && !/^\d/.test(e.answer ?? "")) { // nothing says that it arrived
    node.append(draw(from, to, `${said}: ${e.answer || "no answer"}`, "missed"));
  } else {
    node.append(draw(from, to, said, ""));
    if (e.answer) node.append(draw(to, from, e.answer, e.kind === "lost" ? "answer missed" : "answer"));
  }
  if (!e.request && !e.response) return;
  const texts = [e.request, e.response].filter(Boolean).map((part) => make("pre", {}, part));
  node.append(make("details", {}, make("summary", {}, "request and answer"), ...texts));
}

/** An arrow between the middles of two columns, or a text over one. Each column has two halves, after the time. */
function draw(from, to, label, kind) {
  const node = make("span", { class: `arrow ${to < from ? "left" : "right"} ${kind}` }, label);
  const middle = (column) => 2 * column + 3;
  node.style.gridColumn = from === to ? `${middle(from) - 1} / span 2` : `${middle(Math.min(from, to))} / ${middle(Math.max(from, to))}`;
  return node;
}

connect();
