// Rows that are ticked: how many there are, and what can be done with them once there are some.
export function picking() {
  document.addEventListener("change", (event) => {
    if (event.target.dataset.pickAll !== undefined) {
      for (const box of document.querySelectorAll(".pick input[name]")) box.checked = event.target.checked;
    }
    if (event.target.closest(".pick")) show();
  });
  document.body.addEventListener("htmx:afterSwap", show);
  show();
}

function show() {
  const bar = document.querySelector("[data-picked]");
  if (!bar) return;
  for (const all of document.querySelectorAll("[data-pick-all]")) all.hidden = false;
  const count = document.querySelectorAll(".pick input[name]:checked").length;
  bar.classList.toggle("some", count > 0);
  bar.querySelector("[data-picked-count]").textContent = count ? `${count} picked` : "Nothing is picked";
  for (const button of bar.querySelectorAll("button")) button.disabled = count === 0;
}
