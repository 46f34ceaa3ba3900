// A link with data-dialog shows what its page asks in a dialog of this one; a button waits until what must be typed is typed; toasts go.
const TOAST_MS = 8000;
let opener = "";

export function dialogs() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-dialog]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) { event.preventDefault(); show(link.href); return; }
    const close = event.target.closest("[data-close]");
    const dialog = close?.closest("dialog");
    if (dialog) { event.preventDefault(); dialog.close(); }
    close?.closest(".toast")?.remove();
    for (const open of document.querySelectorAll("details.drop[open]")) if (!open.contains(event.target)) open.open = false;
  });
  document.addEventListener("input", (event) => { if (event.target.dataset.typed !== undefined) check(event.target); });
  document.getElementById("dialog")?.addEventListener("close", go_back);
  await_typed(document);
  document.body.addEventListener("htmx:afterSwap", () => await_typed(document));
  for (const toast of document.querySelectorAll(".toast.success")) setTimeout(() => toast.remove(), TOAST_MS);
}

async function show(address) {
  const dialog = document.getElementById("dialog");
  let asked = null;
  try {
    const answer = await fetch(address, { headers: { "X-Surety-Dialog": "1" } });
    if (answer.ok && !answer.redirected) asked = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-dialog-content]");
  } catch { /* the page itself will say what is wrong */ }
  if (!asked) { location.assign(address); return; }
  for (const form of asked.querySelectorAll("form:not([action])")) form.setAttribute("action", address);
  opener = address;
  dialog.replaceChildren(document.adoptNode(asked));
  await_typed(dialog);
  dialog.showModal();
  dialog.querySelector("[autofocus], input:not([type=hidden]), button")?.focus();
}

// The browser goes back to the link that opened it, unless that was fetched anew meanwhile: nobody is to begin at the top of the page again.
function go_back() {
  if (document.activeElement !== document.body) return;
  const link = [...document.querySelectorAll("a[data-dialog]")].find((each) => each.href === opener);
  (link ?? document.getElementById("main")).focus();
}

function await_typed(within) {
  for (const field of within.querySelectorAll("[data-typed]")) check(field);
}

function check(field) {
  const button = field.form?.querySelector("button:not([type=button])");
  if (button) button.disabled = field.value !== field.dataset.typed;
}
