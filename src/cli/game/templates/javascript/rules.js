// The rules of {{title}}: two bots take 1 to 3 stones in turn, and the last stone wins.
//
// Arbiter asks one question a line, and these rules answer each with one line, both JSON. The rules
// are a function of the questions: no clock, no files, no chance but the seed. docs/games.md has
// the whole protocol.
"use strict";

const MOST = 3;
const COLUMNS = 10;

// A match in progress. Seats are 1 and 2.
class Match {
  constructor({ bots, params, seed, frames }) {
    this.names = bots;
    this.heap = params.heap;
    this.rows = Math.ceil(this.heap / COLUMNS);
    this.draws = frames;
    // The seed is the only source of chance. Its last digit says who begins.
    this.turn = 1 + (parseInt(seed.at(-1), 16) % 2);
  }

  get name() {
    return this.names[this.turn - 1];
  }

  // Both bots learn the heap and their seat, and the first one is asked.
  begin() {
    const tells = [1, 2].map((seat) => ({ tell: seat, text: `start ${this.heap} ${seat}` }));
    return [...tells, ...this.frame(`${this.heap} stones, ${this.name} begins`), this.request()];
  }

  request() {
    return { ask: this.turn, text: `move ${this.heap}` };
  }

  // The legal replies: for people who play, for tests, and for the check below.
  legal() {
    return ["1", "2", "3"].slice(0, Math.min(MOST, this.heap));
  }

  // The bot that was asked has replied, or has forfeited: it was too late, or crashed.
  hear({ text, forfeit }) {
    const other = 3 - this.turn;
    if (forfeit) return [this.over(other)];
    // A reply is any text. Check it before you use it.
    if (!this.legal().includes(text)) {
      const why = `take 1 to ${Math.min(MOST, this.heap)} stones`;
      return [{ illegal: this.turn, why }, this.over(other)];
    }
    this.heap -= Number(text);
    const frame = this.frame(`${this.name} takes ${text}, ${this.heap} left`);
    if (this.heap === 0) return [...frame, this.over(this.turn)];
    this.turn = other;
    return [...frame, this.request()];
  }

  // The score of each seat: one number for each name in `score` of game.toml.
  over(winner) {
    return { over: [1, 2].map((seat) => [seat === winner ? 2 : 0]) };
  }

  // A picture for people. It is drawn only if the match is to have pictures.
  frame(caption) {
    if (!this.draws) return [];
    let svg = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 200 ${20 * this.rows}'>`;
    svg += "<rect width='200' height='100%' fill='#fdf6e3'/>";
    for (let stone = 0; stone < this.heap; stone++) {
      const x = (stone % COLUMNS) * 20 + 10;
      const y = Math.floor(stone / COLUMNS) * 20 + 10;
      svg += `<circle cx='${x}' cy='${y}' r='8' fill='#586e75'/>`;
    }
    return [{ frame: { svg: svg + "</svg>", caption } }];
  }
}

let match;

function answer(question) {
  if (question.new) {
    match = new Match(question.new);
    return { do: match.begin() };
  }
  if (question.legal) return { legal: match.legal() };
  // One bot is asked at a time, so there is one reply.
  return { do: match.hear(question.heard[0]) };
}

const lines = require("node:readline").createInterface({ input: process.stdin });
lines.on("line", (line) => console.log(JSON.stringify(answer(JSON.parse(line)))));
