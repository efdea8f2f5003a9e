// Dark or light as Airflow is. Its choice stands in localStorage, which this frame shares with it.
const KEY = "theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function chosen() {
  try {
    const root = parent !== window ? parent.document.documentElement : null;
    if (root?.classList.contains("dark")) return "dark";
    if (root?.classList.contains("light")) return "light";
  } catch {
    // a frame of another site: only our own choice is known
  }
  let stored = null;
  try {
    stored = localStorage.getItem(KEY);
  } catch {
    // storage may be forbidden
  }
  if (stored === "dark" || stored === "light") return stored;
  return system.matches ? "dark" : "light";
}

export function followTheme(changed) {
  const apply = () => {
    const theme = chosen();
    if (document.documentElement.dataset.theme === theme) return;
    document.documentElement.dataset.theme = theme;
    changed?.();
  };
  apply();
  system.addEventListener("change", apply);
  addEventListener("storage", (event) => event.key === KEY && apply());
  try {
    if (parent !== window) {
      const watch = new MutationObserver(apply);
      watch.observe(parent.document.documentElement, { attributes: true, attributeFilter: ["class", "style"] });
    }
  } catch {
    // as above
  }
}
