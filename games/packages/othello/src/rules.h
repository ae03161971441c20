/* The rules of Othello: they answer the questions of Arbiter. */

#ifndef RULES_H
#define RULES_H

#include "text.h"

/* Answers a question, which is a JSON object. The answer, another one, stays as it is until the
 * next question. A match starts with `new`, and its state is all that is kept between questions. */
Text rules_answer(const char *question, size_t length);

#endif
