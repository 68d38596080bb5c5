// Shared by the explorers in the browser: every explorer's module is this text followed by its own (see `script` in controls.py).

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];

/** A number as a learner reads it: two decimals, a true minus sign, never −0.00. */
export function number(value, digits = 2) {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

/** Fill {names} in a text from the message catalogue. */
export function fill(template, parameters) {
  return template.replace(/\{(\w+)\}/g, (whole, name) => (name in parameters ? String(parameters[name]) : whole));
}

function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children); // strings become text, never markup
  return element;
}

function svg(tag, attributes = {}, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

function focusable(element) {
  // JupyterLab takes arrow keys and letters from any focused element that does not say this itself.
  element.dataset.lmSuppressShortcuts = "true";
  return element;
}
