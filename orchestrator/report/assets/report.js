"use strict";
const { copy, copied } = document.body.dataset;
for (const code of document.querySelectorAll("code.cmd")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = copy;
  button.ariaLabel = copy + ": " + code.textContent;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = copied;
    setTimeout(() => { button.textContent = copy; }, 1500);
  });
  code.after(button);
}
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
