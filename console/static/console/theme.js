// Light, dark, or as the system has it: kept in a cookie, so that the server draws the next page right at once.
const YEAR_SECONDS = 31536000;

export function theme() {
  for (const button of document.querySelectorAll("button[data-choose-theme]")) {
    button.addEventListener("click", () => {
      const chosen = button.dataset.chooseTheme;
      const secure = location.protocol === "https:" ? "; Secure" : "";
      document.cookie = `surety_theme=${chosen}; Path=/; Max-Age=${YEAR_SECONDS}; SameSite=Lax${secure}`;
      document.documentElement.dataset.theme = chosen;
      for (const each of document.querySelectorAll("button[data-choose-theme]")) each.setAttribute("aria-pressed", String(each === button));
    });
  }
}
