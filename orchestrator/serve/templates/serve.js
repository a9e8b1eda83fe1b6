(function () {
  "use strict";
  var part = document.getElementById("live"), tag = part.dataset.version, failures = 0;
  function look() {
    fetch("live", { headers: { "If-None-Match": tag }, cache: "no-store" }).then(function (answer) {
      failures = 0;
      part.removeAttribute("aria-busy");
      if (answer.status !== 200) { return null; }
      tag = answer.headers.get("ETag");
      return answer.text();
    }).then(function (text) {
      if (text === null) { return; }
      var open = Array.prototype.map.call(part.querySelectorAll("details[open]"), function (one) { return one.id; });
      part.innerHTML = text;
      open.forEach(function (id) { var one = document.getElementById(id); if (one) { one.open = true; } });
    }).catch(function () { failures += 1; part.setAttribute("aria-busy", "true"); })
      .then(function () { window.setTimeout(look, failures ? 10000 : 2000); });
  }
  window.setTimeout(look, 2000);
}());
