// Players of movies: a slider over frames, and a button that plays them; Escape stops it.
document.querySelectorAll(".player").forEach(function (player) {
  const frames = player.querySelectorAll(".sheet figure");
  const slider = player.querySelector("input[type=range]"), button = player.querySelector("button"), step = player.querySelector(".step");
  if (!slider) return;
  let timer = 0;
  function show(number) {
    frames.forEach(function (frame, place) { frame.classList.toggle("shown", place === number); });
    slider.value = number;
    step.textContent = frames[number].querySelector("figcaption").textContent;
    slider.setAttribute("aria-valuetext", step.textContent);
  }
  function say(word) {
    button.textContent = word;
    button.setAttribute("aria-label", button.getAttribute("aria-label").replace(/^\w+/, word));
  }
  function pause() { clearInterval(timer); timer = 0; say("Play"); }
  function play() {
    if (+slider.value === frames.length - 1) show(0);
    say("Pause");
    timer = setInterval(function () {
      if (+slider.value === frames.length - 1) pause(); else show(+slider.value + 1);
    }, Math.max(60, Math.min(400, 6000 / frames.length)));
  }
  button.addEventListener("click", function () { if (timer) pause(); else play(); });
  slider.addEventListener("input", function () { pause(); show(+slider.value); });
  player.addEventListener("keydown", function (event) { if (event.key === "Escape") pause(); });
});
