// Draws a match of Rock, Paper, Scissors as SVG: a row for each seat with the sign of its hand, its
// points as a bar, and its last choices as dots. A bright dot scored points.
//
// Attributes stand in single quotes, which JSON does not escape. Dots and bars are strokes of a
// path, which is the shortest way to draw many of them.

"use strict";

const WIDTH = 320;
const HEAD = 32; // height of the line above the rows
const ROW = 44; // height of a row
const LEFT = 48; // where names, bars and dots begin
const RIGHT = 308; // where they end
const BAR = RIGHT - LEFT - 6; // length of a full bar; its round ends stand out
const HEAD_BAR = 140; // length of the bar for the rounds
const DOTS = 84; // of all seats together
const DOTS_OF_A_SEAT = 21; // as many as fit
const LONGEST_NAME = 20;

const EMPTY = "#3b444c";
const COLOURS = { rock: "#5b7db1", paper: "#d9952b", scissors: "#c8506b" };

// Hands around 0 0, drawn with a pen of width 4: white, and dark lines between the fingers.
const HANDS = {
  rock: { hand: "M-6-4v9h12v-9zM-6-6h1M0-7h0M6-6h-1", lines: "M-3-8v6M0-8v6M3-8v6M-8 2h9" },
  paper: { hand: "M-5 2v7h8v-7zM-5 3l-2-10M-2 2l-1-13M1 2l1-13M3 3l3-10M4 8l6-6", lines: "" },
  scissors: { hand: "M-4 4v5h8v-5zM-2 3l-5-13M2 3l5-13", lines: "M-3 3v3M1 3v3M-5 7h7" },
};

function escape(text) {
  return text.replace(/[&<>'"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

// A disc with the hand of a choice, for <use>.
function definition(choice) {
  const { hand, lines } = HANDS[choice];
  const colour = COLOURS[choice];
  const detail = lines && `<path d='${lines}' stroke='${colour}' stroke-width='1.2'/>`;
  return (
    `<g id='${choice[0]}'><circle r='18' fill='${colour}'/>` +
    `<path d='${hand}' fill='#fff' stroke='#fff' stroke-width='4'/>${detail}</g>`
  );
}

// The sign of a seat: its last choice, or an empty disc.
function sign(seat, y) {
  const choice = seat.choices.at(-1);
  return choice
    ? `<use href='#${choice[0]}' y='${y + 22}'/>`
    : `<circle cy='${y + 22}' r='18' fill='${EMPTY}'/>`;
}

function name(seat, y) {
  const text = [...seat.name].slice(0, LONGEST_NAME).join("");
  return `<text y='${y + 14}'>${escape(text)}</text>`;
}

function points(seat, y) {
  return `<text y='${y + 14}'>${seat.isOut ? "out" : seat.points}</text>`;
}

// The dots of one choice in the last rounds of all seats, either those that scored or the others.
function dots(seats, choice, isBright) {
  const recent = Math.min(DOTS_OF_A_SEAT, Math.floor(DOTS / seats.length));
  const places = seats.flatMap((seat, index) =>
    seat.choices.slice(-recent).flatMap((chosen, n, { length }) => {
      const scored = seat.gains.at(n - length) > 0;
      const x = LEFT + 4 + 12 * n;
      return chosen === choice && scored === isBright ? [`M${x} ${HEAD + ROW * index + 35}h0`] : [];
    }),
  );
  const opacity = isBright ? "" : " opacity='.35'";
  const colour = COLOURS[choice];
  return places.length > 0 ? `<path d='${places.join("")}' stroke='${colour}'${opacity}/>` : "";
}

// A bar for each seat. A full bar is the most points, or a good result if no seat has as much yet.
function bars(match) {
  const good = ((match.seats.length - 1) * match.rounds) / 2;
  const full = Math.max(good, ...match.seats.map((seat) => seat.points));
  const bar = (index, length) => `M${LEFT + 3} ${HEAD + ROW * index + 22}h${length}`;
  const all = match.seats.map((_, index) => bar(index, BAR));
  const scored = match.seats.flatMap((seat, index) =>
    seat.points > 0 ? [bar(index, Math.round((BAR * seat.points) / full))] : [],
  );
  return (
    `<path d='${all.join("")}' stroke='${EMPTY}'/>` +
    `<path d='${scored.join("")}' stroke='#4fb286'/>`
  );
}

// The number of the round, and how much of the match is played.
function head(match) {
  const length = Math.round((HEAD_BAR * match.round) / match.rounds);
  const start = RIGHT - HEAD_BAR;
  return (
    `<path d='M${start} 17h${HEAD_BAR}' stroke='${EMPTY}' stroke-width='2'/>` +
    `<path d='M${start} 17h${length}' stroke='#f2c14e' stroke-width='2'/>` +
    `<text x='12' y='21' fill='#aab4bc'>round ${match.round} of ${match.rounds}</text>`
  );
}

function draw(match) {
  const { seats } = match;
  const height = HEAD + ROW * seats.length + 4;
  const rows = (part) => seats.map((seat, index) => part(seat, HEAD + ROW * index)).join("");
  const choices = Object.keys(COLOURS);
  const recent = [true, false].flatMap((isBright) =>
    choices.map((choice) => dots(seats, choice, isBright)),
  );
  return (
    `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 ${WIDTH} ${height}' ` +
    `font-family='sans-serif' font-size='13' stroke-linecap='round' stroke-linejoin='round'>` +
    `<rect width='${WIDTH}' height='${height}' rx='8' fill='#232a30'/>` +
    `<defs>${choices.map(definition).join("")}</defs>${head(match)}` +
    `<g transform='translate(24)'>${rows(sign)}</g><g fill='#fff'>` +
    `<g transform='translate(${LEFT})'>${rows(name)}</g>` +
    `<g transform='translate(${RIGHT})' text-anchor='end' font-weight='700'>` +
    `${rows(points)}</g></g>` +
    `<g stroke-width='6'>${bars(match)}</g><g stroke-width='8'>${recent.join("")}</g></svg>`
  );
}

module.exports = { draw };
