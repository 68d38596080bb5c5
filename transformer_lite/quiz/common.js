// What the cards in the browser share. Text becomes text nodes only; nothing here parses HTML.

const CONTROLS = new Set(["input", "textarea", "select", "button", "summary", "a"]);

function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked" || key === "open") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  // JupyterLab takes arrows and letters for itself unless the focused element says so.
  if (CONTROLS.has(name) || "tabindex" in properties) node.setAttribute("data-lm-suppress-shortcuts", "true");
  return node;
}

// `text` with what stands between backticks as code.
function rich(text) {
  const fragment = document.createDocumentFragment();
  text.split(/`([^`\n]+)`/).forEach((part, i) => {
    if (part) fragment.append(i % 2 ? element("code", {}, part) : part);
  });
  return fragment;
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

// How wide `text` is in the font of `node`, in pixels.
function width(text, node) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = getComputedStyle(node).font;
  return pen.measureText(text).width;
}
