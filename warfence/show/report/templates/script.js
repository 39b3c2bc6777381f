// Buttons with aria-controls show and hide their panels. One panel of a table is open at a time. Escape closes it, and the
// arrow keys go from square to square of the matrix. Without a script all panels are shown.
"use strict";

const said = document.getElementById("said");
let last = null; // the button of the panel that was opened last

const panelOf = (button) => document.getElementById(button.getAttribute("aria-controls"));
const buttonOf = (panel) => document.querySelector(`button[aria-controls="${panel.id}"]`);

function set(button, open) {
  button.setAttribute("aria-expanded", String(open));
  panelOf(button).hidden = !open;
}

function open(button) {
  for (const other of button.closest("table").querySelectorAll('button[aria-expanded="true"]')) set(other, false);
  set(button, true);
  last = button;
  said.textContent = `Opened below: ${button.dataset.said}`;
  panelOf(button).scrollIntoView({ block: "nearest", inline: "nearest" });
}

function close(button) {
  set(button, false);
  if (last === button) last = null;
  said.textContent = "Closed.";
  button.focus();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.closes) close(buttonOf(document.getElementById(button.dataset.closes)));
  else if (button?.hasAttribute("aria-controls")) {
    if (button.getAttribute("aria-expanded") === "true") close(button);
    else open(button);
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const panel = document.activeElement.closest(".panel");
    const button = panel ? buttonOf(panel) : last;
    if (button) close(button);
  } else if (event.key.startsWith("Arrow")) {
    const next = beside(document.activeElement, event.key);
    if (next) {
      event.preventDefault();
      next.focus();
    }
  }
});

// The square that lies beside another one; over empty places and other rows to the next.
function beside(square, key) {
  if (!square.matches("button.square")) return null;
  const rows = [...square.closest("table").rows].filter((row) => row.querySelector("button.square"));
  let column = square.closest("td").cellIndex;
  let row = rows.indexOf(square.closest("tr"));
  const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key];
  for (;;) {
    row += down;
    column += right;
    const cell = rows[row]?.cells[column];
    if (!cell) return null;
    const found = cell.querySelector("button.square");
    if (found) return found;
  }
}
