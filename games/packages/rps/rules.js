// The rules of Rock, Paper, Scissors for 2 to 8 bots, which choose at the same time.
//
// Arbiter writes one JSON object a line, and these rules answer each with one line. The state of
// the match depends on these lines alone, and there is no chance in it.

"use strict";

const { draw } = require("./drawing.js");

// The choices. Each beats the one before it, and the first beats the last.
const CHOICES = ["rock", "paper", "scissors"];

// How much of a wrong reply a reason quotes, in characters.
const QUOTED = 20;

const FORFEITS = { clock: "was too late", gone: "ended", flood: "wrote too much" };

function beats(one, other) {
  return CHOICES.indexOf(one) === (CHOICES.indexOf(other) + 1) % CHOICES.length;
}

// A match in progress. Seats count from 1.
class Match {
  constructor({ params, bots, frames }) {
    this.rounds = params.rounds;
    this.draws = frames;
    this.round = 0;
    this.seats = bots.map((name, index) => ({
      number: index + 1,
      name,
      points: 0,
      choice: undefined, // of this round
      isOut: false,
      // One for each round; no choice if the seat is out.
      choices: [],
      gains: [],
    }));
  }

  // The seats that have not forfeited.
  present() {
    return this.seats.filter((seat) => !seat.isOut);
  }

  // All bots learn the number of seats, their own seat and the number of rounds.
  begin() {
    const count = this.seats.length;
    const text = (seat) => `start ${count} ${seat.number} ${this.rounds}`;
    const caption = `${count} bots, ${this.rounds} rounds`;
    return [...this.tell(text), ...this.frame(caption), ...this.ask()];
  }

  tell(text) {
    return this.present().map((seat) => ({ tell: seat.number, text: text(seat) }));
  }

  // All bots choose before one of them learns what the others chose.
  ask() {
    return this.present().map((seat) => ({ ask: seat.number, text: "choose" }));
  }

  // The bots have chosen. Those that did not are out.
  hear(replies) {
    this.round += 1;
    const actions = replies.flatMap((reply) => this.take(reply));
    this.score();
    if (this.round === this.rounds || this.present().length < 2) {
      return [...actions, ...this.end()];
    }
    const chosen = this.seats.map((seat) => seat.choices.at(-1) ?? "-");
    const tells = this.tell(() => `chose ${chosen.join(" ")}`);
    return [...actions, ...tells, ...this.frame(this.caption()), ...this.ask()];
  }

  // Takes the reply of one seat. A forfeit loses all points, and ends the seat's program.
  take({ seat: number, text, forfeit }) {
    const seat = this.seats[number - 1];
    if (CHOICES.includes(text)) {
      seat.choice = text;
      return [];
    }
    seat.isOut = true;
    seat.choice = undefined;
    seat.points = 0;
    const out = { dismiss: number };
    if (forfeit) {
      return [out, { note: `${seat.name} ${FORFEITS[forfeit]} and is out` }];
    }
    const quote = JSON.stringify([...text].slice(0, QUOTED).join(""));
    const why = `write rock, paper or scissors, not ${quote}`;
    return [{ illegal: number, why }, out, { note: `${seat.name} broke the rules and is out` }];
  }

  // Each seat gains a point for every seat that it beats. A seat that is out is beaten by all.
  score() {
    for (const seat of this.seats) {
      const isBeaten = (other) => other.isOut || beats(seat.choice, other.choice);
      const gain = seat.isOut ? 0 : this.seats.filter(isBeaten).length;
      seat.choices.push(seat.choice);
      seat.gains.push(gain);
      seat.points += gain;
    }
  }

  // Ends the match. A seat that is left alone would win all rounds that remain.
  end() {
    const left = this.rounds - this.round;
    for (const seat of this.present()) {
      seat.points += left * (this.seats.length - 1);
    }
    return [...this.frame(this.result()), { over: this.seats.map((seat) => [seat.points]) }];
  }

  caption() {
    return `round ${this.round} of ${this.rounds}`;
  }

  result() {
    if (this.present().length === 0) {
      return "all bots are out";
    }
    const most = Math.max(...this.seats.map((seat) => seat.points));
    const best = this.seats.filter((seat) => seat.points === most).map((seat) => seat.name);
    const verb = best.length === 1 ? "wins" : "share the win";
    return `${best.join(", ")} ${verb} with ${most} point${most === 1 ? "" : "s"}`;
  }

  // A picture of the match, if pictures are wanted.
  frame(caption) {
    return this.draws ? [{ frame: { svg: draw(this), caption } }] : [];
  }
}

// Calls `take` with each line of standard input. The module `readline` is of no use here: it also
// ends a line at U+2028, which a reply may contain.
function forEachLine(take) {
  let rest = "";
  process.stdin.setEncoding("utf8");
  process.stdin.on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    lines.forEach(take);
  });
}

let match;

function answer(question) {
  if (question.legal) {
    return { legal: CHOICES };
  }
  if (question.new) {
    match = new Match(question.new);
    return { do: match.begin() };
  }
  return { do: match.hear(question.heard) };
}

forEachLine((line) => process.stdout.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`));
