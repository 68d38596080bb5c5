// Makes stock ipywidgets controls safe and named: JupyterLab must not take their keys (with a slider's handle focused, the letter a
// would insert a cell), a slider's handle has no accessible name of its own, and a picture has no alternative text.

const FOCUSABLE = "button, input, select, textarea, summary, [tabindex], .noUi-handle";

function render({ model, el }) {
  el.style.display = "none";
  let root = null;
  const stop = (event) => event.stopPropagation();
  const apply = () => {
    if (!root) return;
    root.lang = model.get("lang");
    for (const element of root.querySelectorAll(FOCUSABLE)) element.dataset.lmSuppressShortcuts = "true";
    const names = model.get("names");
    root.querySelectorAll(".noUi-handle").forEach((handle, i) => names[i] && handle.setAttribute("aria-label", names[i]));
    for (const image of root.querySelectorAll("img")) image.alt = model.get("alternative");
  };
  const observer = new MutationObserver(apply);
  let frame = 0;
  const attach = () => {
    root = el.closest(".tl-guarded");
    if (!root) {
      frame = requestAnimationFrame(attach); // rendered before it was put into the page
      return;
    }
    root.addEventListener("keydown", stop);
    observer.observe(root, { childList: true, subtree: true });
    apply();
  };
  attach();
  model.on("change:alternative", apply);
  model.on("change:names", apply);
  return () => {
    cancelAnimationFrame(frame);
    observer.disconnect();
    root?.removeEventListener("keydown", stop);
    model.off("change:alternative", apply);
    model.off("change:names", apply);
  };
}

export default { render };
