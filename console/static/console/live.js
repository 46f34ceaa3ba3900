// Keeps what changes on the page up to date, and says whether it is: old counters must not pass for new ones.
const EVERY_MS = 2000;

export function live() {
  const state = document.getElementById("live-state");
  if (!state || !window.htmx || !document.querySelector("[hx-trigger^=refresh]")) return;
  const say = (kind, words) => { state.dataset.state = kind; state.textContent = words; };
  for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) document.body.addEventListener(name, () => say("bad", "stale"));
  document.body.addEventListener("htmx:afterSwap", () => say("good", "live"));
  setInterval(() => { if (!document.hidden) window.htmx.trigger(document.body, "refresh"); }, EVERY_MS);
}
