// Keeps what changes on the page up to date, and says whether it is: old counters must not pass for new ones. What is told comes over a WebSocket, as
// a snapshot and then changes; without one the parts that change are fetched again and again.
const STALE_MS = 3000;
const LOST_MS = 10000;
const POLL_MS = 5000;
const PACE_MS = [0, 1000, 2000, 3000, 5000];
const AGAIN_MS = [500, 1000, 2000, 5000, 10000];
const LOGGED_OUT = 4401;
const UNKNOWN = "unknown", UNSHOWN = "unshown";

export function live() {
  const shown = document.getElementById("live-state");
  if (!shown) return;
  let socket = null, feed = null, version = null, tries = 0, heard = 0, begun = 0;
  const shapes = new Map(), fetched = new Map(), hurried = new Map(), due = new Set(), failed = new Set();

  function say(state, words) {
    if (shown.dataset.state === state && shown.textContent === words) return;
    shown.dataset.state = state;
    shown.textContent = words;
  }

  // Not reloaded: if this page answered a POST, that would be sent again.
  function show_anew() { location.replace(location.pathname + location.search); }

  function elements() { return document.querySelectorAll("[data-live], [data-live-state], [data-live-value], [data-shape]"); }

  function keys(element) { return [element.dataset.live, element.dataset.liveState, element.dataset.liveValue, element.dataset.shape].filter(Boolean); }

  function subjects() {
    const found = new Set();
    for (const element of elements()) for (const key of keys(element)) found.add(key.slice(0, key.lastIndexOf("/")));
    return [...found];
  }

  function watch() {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ watch: subjects(), feed, since: version }));
  }

  function connect() {
    if (socket || document.hidden) return;
    const own = socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/live`);
    begun = performance.now();
    own.addEventListener("open", watch);
    own.addEventListener("message", (event) => {
      if (socket !== own) return;
      tries = 0;
      heard = performance.now();
      told(JSON.parse(event.data));
    });
    own.addEventListener("close", (event) => {
      if (socket !== own) return;
      socket = null;
      if (event.code === LOGGED_OUT) { show_anew(); return; }
      setTimeout(connect, AGAIN_MS[Math.min(tries++, AGAIN_MS.length - 1)]);
    });
  }

  // One that is open and says nothing has nobody at its other end any more, and nobody will say so.
  function abandon() {
    const silent = socket;
    if (!silent || performance.now() - Math.max(heard, begun) < LOST_MS) return;
    socket = null;
    silent.close();
    connect();
  }

  function told(message) {
    if (message.feed !== feed) shapes.clear();
    feed = message.feed;
    version = message.version;
    if (!message.full && Object.keys(message.cells).length === 0) return;
    for (const element of elements()) {
      const { live: text, liveState: state, liveValue: value, shape } = element.dataset;
      if (text && (text in message.cells || message.full)) write(element, message.cells[text] ?? null, message.full);
      if (state && (state in message.cells || message.full)) element.dataset.state = message.cells[state] ?? "";
      if (value && message.cells[value] != null) element.value = Number(message.cells[value]);
      if (shape && shape in message.cells) {
        // A part that says of what shape it is was perhaps made after the last change, and perhaps before.
        const before = element.dataset.is ?? shapes.get(shape);
        shapes.set(shape, message.cells[shape]);
        if (before === message.cells[shape]) due.delete(element.id);
        else if (before !== undefined) due.add(element.id);
      }
    }
    hurry_all();
  }

  // What changes is shown at once; what changes all the time is fetched less and less often, so that a hundred pages of a busy broker cost it little.
  function hurry(part) {
    const now = performance.now(), last = hurried.get(part.id);
    const pace = last && now - last.at < 2 * POLL_MS ? last.pace : 0;
    if (now - (fetched.get(part.id) ?? 0) < PACE_MS[pace] || !refresh(part)) return;
    hurried.set(part.id, { at: now, pace: Math.min(pace + 1, PACE_MS.length - 1) });
  }

  function hurry_all() {
    for (const id of due) {
      const part = document.getElementById(id);
      if (part) hurry(part);
      else due.delete(id);
    }
  }

  function write(element, text, quietly) {
    const words = text ?? UNKNOWN;
    if (element.textContent === words) return;
    element.textContent = words;
    element.classList.toggle("unknown", text === null);
    if (quietly) return;
    element.classList.remove("changed");
    void element.offsetWidth;
    element.classList.add("changed");
  }

  // Nothing is taken from under somebody's hand.
  function isUsed(part) { return part.querySelector("details[open], .pick :checked, :focus-visible") !== null; }

  function refresh(part) {
    if (!window.htmx || isUsed(part)) return false;
    due.delete(part.id);
    fetched.set(part.id, performance.now());
    window.htmx.trigger(part, "refresh");
    return true;
  }

  function isFresh() { return heard > 0 && performance.now() - heard < STALE_MS; }

  function tick() {
    if (document.hidden) return;
    abandon();
    const now = performance.now();
    const parts = [...document.querySelectorAll("[data-refresh]")];
    const fresh = isFresh();
    hurry_all();
    let held = false;
    for (const part of parts) {
      const told = fresh && part.dataset.shape && !failed.has(part.id);
      const every = told ? Number(part.dataset.every ?? Infinity) * 1000 : POLL_MS;
      if (!fetched.has(part.id)) fetched.set(part.id, now);
      if (now - fetched.get(part.id) >= every && !refresh(part)) held = true;
      if (due.has(part.id) && isUsed(part)) held = true;
    }
    const stale = parts.some((part) => failed.has(part.id)) || (!parts.length && heard > 0 && !fresh);
    if (stale) say("bad", "stale");
    else if (!document.querySelector("main :is([data-live], [data-live-state], [data-refresh])")) say("", "shown once");
    else if (held) say("warn", "on hold");
    else if (fresh) say("good", "live");
    else if (heard === 0 && now < STALE_MS) say("", "connecting");
    else say("warn", parts.length ? "every 5 s" : "shown once");
  }

  // What is told says nothing of a part that could not be fetched: it is old until it was. Where the part says that something cannot be shown, it is true.
  function fell_behind(event) {
    const part = event.target;
    if (part.id === UNSHOWN && event.type === "htmx:responseError") failed.delete(part.id);
    else if (part.dataset.refresh !== undefined) failed.add(part.id);
  }

  // An answer without the part is another page (what was not to be had is, somebody has logged out): that one is shown, and not this one with a hole.
  function replaced(event) {
    const part = event.target, { shouldSwap, serverResponse } = event.detail;
    if (part.dataset.refresh === undefined || !shouldSwap || serverResponse.includes(`id="${part.id}"`)) return;
    event.detail.shouldSwap = false;
    show_anew();
  }

  for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) document.body.addEventListener(name, fell_behind);
  document.body.addEventListener("htmx:beforeSwap", replaced);
  document.body.addEventListener("htmx:afterSwap", (event) => { failed.delete(event.detail.target.id); version = null; watch(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { connect(); fetched.clear(); tick(); } });
  setInterval(tick, 500);
  connect();
}
