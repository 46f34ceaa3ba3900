// One box in the head of a list ticks all of its rows.
export function picks() {
  for (const all of document.querySelectorAll("[data-pick-all]")) {
    all.hidden = false;
    all.addEventListener("change", () => {
      for (const box of all.closest("table").querySelectorAll("tbody .pick input[type=checkbox]")) box.checked = all.checked;
    });
  }
}
