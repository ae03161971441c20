// Plays as people do: it keeps a choice that won, and after a loss plays what would have won. One
// choice in five is by chance.

"use strict";

const readline = require("node:readline");

const CHOICES = ["rock", "paper", "scissors"];
const CHANCE = 0.2;

// How many of the others `choice` beats, less those that beat it.
function balance(choice, others) {
  const index = CHOICES.indexOf(choice);
  const count = (wanted) => others.filter((other) => other === wanted).length;
  return count(CHOICES[(index + 2) % 3]) - count(CHOICES[(index + 1) % 3]);
}

let seat;
let choice;

function randomChoice() {
  return CHOICES[Math.floor(3 * Math.random())];
}

function hear(chosen) {
  const others = chosen.filter((_, index) => index !== seat - 1);
  if (balance(choice, others) <= 0) {
    const best = Math.max(...CHOICES.map((one) => balance(one, others)));
    choice = CHOICES.find((one) => balance(one, others) === best);
  }
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const [word, ...words] = line.split(" ");
  if (word === "start") {
    seat = Number(words[1]);
    choice = randomChoice();
  } else if (word === "chose") {
    hear(words);
  } else if (word === "choose") {
    choice = Math.random() < CHANCE ? randomChoice() : choice;
    console.log(choice);
  }
});
