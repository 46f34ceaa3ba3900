// Says so when the page can no longer refresh itself: old counters must not pass for new ones.
(function () {
  "use strict";
  var stale = document.getElementById("stale");
  function show() { stale.hidden = false; }
  ["htmx:sendError", "htmx:responseError", "htmx:timeout"].forEach(function (name) { document.body.addEventListener(name, show); });
  document.body.addEventListener("htmx:afterSwap", function () { stale.hidden = true; });
})();
