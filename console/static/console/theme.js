// What a person has chosen in the menu, light or dark and keys or none: kept in cookies, so that the server draws the next page right at once.
const YEAR_SECONDS = 31536000;

export function theme() {
  choices("theme", "chooseTheme");
  choices("keys", "chooseKeys");
}

function choices(name, attribute) {
  const buttons = [...document.querySelectorAll("button")].filter((button) => attribute in button.dataset);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const chosen = button.dataset[attribute];
      const secure = location.protocol === "https:" ? "; Secure" : "";
      document.cookie = `surety_${name}=${chosen}; Path=/; Max-Age=${YEAR_SECONDS}; SameSite=Lax${secure}`;
      document.documentElement.dataset[name] = chosen;
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
    });
  }
}
