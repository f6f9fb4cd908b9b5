/* The check of a program of the kernel `loop`: after it, no step reads or writes anything but elements of the call's arrays, numbers, and registers written before.
   An output that is written over an input has its elements in the same order, and no later step reads the input. */
#include "check.h"
#include "loop.h"

typedef struct Sight { int full[LOOP_PLACES], by_row[LOOP_PLACES]; } Sight;      /* what a place holds at this point of the program: an element each, or one a row */

/* Return the elements that an input spans, by its steps along the axes; 0 if these do not go forward, or too far. */
static long span(const LoopInput *input, const long *axes)
{
    long most = 0;
    for (int k = 0; k < LOOP_AXES; k++) {
        long far = times(axes[k] - 1, input->step[k]);
        if (input->step[k] < 0 || input->step[k] >= MOST || far >= MOST) return 0;
        most += far;
    }
    return most + 1;
}

/* Return 1 if an input has its elements in the order of a full output. */
static int in_order(const LoopInput *input, const long *axes)
{
    long whole = 1;
    for (int k = LOOP_AXES - 1; k >= 0; whole *= axes[k--]) if (axes[k] > 1 && input->step[k] != whole) return 0;
    return 1;
}

static int step_fits(const LoopStep *s, const int64_t *output, Sight *seen)
{
    if (s->kind < 0 || s->kind >= LOOP_KINDS || (s->by_row != 0 && s->by_row != 1)) return 0;
    int many = s->kind >= LOOP_FIRST_OF_MANY;
    if (s->kind >= LOOP_FIRST_OF_NUMPY && !many && !(numpy_loops[0][s->kind].run && numpy_loops[1][s->kind].run)) return 0;
    for (int k = 0; k < loop_operands[s->kind]; k++) {
        int64_t at = s->of[k];
        if (at < 0 || at >= LOOP_PLACES || !(seen->full[at] || seen->by_row[at])) return 0;
        if (!many && s->by_row && !seen->by_row[at]) return 0;
    }
    if (many && !s->by_row) return 0;
    if (s->to < 0 || s->to >= LOOP_NUMBER || (s->to >= LOOP_INPUT && s->to < LOOP_OUTPUT)) return 0;
    if (s->to >= LOOP_OUTPUT && output[s->to - LOOP_OUTPUT] != (s->by_row ? LOOP_BY_ROW : LOOP_FULL)) return 0;
    seen->by_row[s->to] = (int)s->by_row, seen->full[s->to] = !s->by_row;
    return 1;
}

int is_loop(const loop_call *a)
{
    const void *inputs[LOOP_INPUTS] = {a->x0, a->x1, a->x2, a->x3, a->x4, a->x5, a->x6, a->x7, a->b0, a->b1, a->i0};
    const void *outputs[LOOP_OUTPUTS] = {a->y0, a->y1, a->y2, a->z0};
    const long reach[LOOP_INPUTS] = {a->reach0, a->reach1, a->reach2, a->reach3, a->reach4, a->reach5, a->reach6, a->reach7, a->reach8, a->reach9, a->reach10};
    const long size[LOOP_OUTPUTS] = {a->size0, a->size1, a->size2, a->size3}, axes[LOOP_AXES] = {a->n0, a->n1, a->n2, a->n};
    const LoopProgram *p = (const void *)a->program;
    long rows = times(times(a->n0, a->n1), a->n2), all = times(rows, a->n), fixed = sizeof *p / sizeof(int64_t);
    int after[LOOP_MOST_STEPS];
    Sight seen = {0};
    if (all >= MOST || a->length < fixed || p->numbers < 0 || p->numbers > LOOP_NUMBERS || p->steps < 1 || p->steps > LOOP_MOST_STEPS) return 0;
    if (a->length != fixed + p->numbers + p->steps * (long)(sizeof(LoopStep) / sizeof(int64_t))) return 0;
    for (int k = 0; k < LOOP_INPUTS; k++) if (inputs[k]) {
        long need = span(&p->input[k], axes);
        if (!need || need > reach[k]) return 0;
        seen.full[LOOP_INPUT + k] = p->input[k].step[LOOP_AXES - 1] != 0 || a->n == 1;
        seen.by_row[LOOP_INPUT + k] = !p->input[k].step[LOOP_AXES - 1] || a->n == 1;
    }
    for (int k = 0; k < LOOP_OUTPUTS; k++) {
        if (p->output[k] != (outputs[k] ? LOOP_FULL : LOOP_UNUSED) && !(outputs[k] && p->output[k] == LOOP_BY_ROW)) return 0;
        if (outputs[k] && size[k] != (p->output[k] == LOOP_FULL ? all : rows)) return 0;
    }
    for (int k = 0; k < p->numbers; k++) seen.by_row[LOOP_NUMBER + k] = 1;
    for (int i = 0; i < p->steps; i++) {
        const LoopStep *s = loop_steps(p) + i;
        if (!step_fits(s, p->output, &seen)) return 0;
        for (int k = 0; s->to >= LOOP_OUTPUT && k < LOOP_INPUTS; k++) if (inputs[k] == outputs[s->to - LOOP_OUTPUT]) {
            if (s->by_row || !in_order(&p->input[k], axes)) return 0;
            seen.full[LOOP_INPUT + k] = seen.by_row[LOOP_INPUT + k] = 0;
        }
    }
    for (int k = 0; k < LOOP_OUTPUTS; k++) if (outputs[k] && !seen.full[LOOP_OUTPUT + k] && !seen.by_row[LOOP_OUTPUT + k]) return 0;
    return a->n <= LOOP_MOST_ROW || loop_in_parts(p, after);
}
