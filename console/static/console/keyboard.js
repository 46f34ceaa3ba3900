// Keys: / finds, g and a letter goes to a page, ? says so, Esc leaves. What they go to is read from the navigation. All but Esc can be turned off (theme.js):
// who speaks to a browser, or has it pressed by a hand that shakes, types letters that are meant for nothing.
const PATIENCE_MS = 1500;

function isTyping(target) {
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

export function keyboard() {
  let goes = 0;
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return leave(event);
    if (document.documentElement.dataset.keys === "off") return;
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (goes && event.timeStamp - goes < PATIENCE_MS) {
      goes = 0;
      const link = document.querySelector(`#nav a[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
    } else if (event.key === "g") {
      goes = event.timeStamp;
    } else if (event.key === "/") {
      event.preventDefault();
      document.getElementById("find")?.select();
    } else if (event.key === "?") {
      document.getElementById("keys")?.showModal();
    }
  });
}

function leave(event) {
  if (isTyping(event.target)) event.target.blur();
  for (const open of document.querySelectorAll("details.drop[open]")) { open.open = false; open.querySelector("summary").focus(); }
  if (location.hash === "#nav") location.hash = "#main";
}
