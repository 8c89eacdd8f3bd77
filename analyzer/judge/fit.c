// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/judge/fit.h"

#include <math.h>
#include <string.h>

/* Two honest measurements of one model differ by 2 to 6 %. */
#define ROW_DEVIATION 0.06

/* Deviations beyond which a row pulls no harder. */
#define HUBER 2.0

#define STEPS 8

/* Benchmarks of products and of attention say what kernels reach within a tenth; what passes over
 * memory, messages and launches take is assumed or differs from cluster to cluster. */
static const struct {
    const char *name;
    double deviation;
} parameters[MTF_FITS] = {
    [MTF_FIT_PRODUCTS] = { "products", 0.10 }, [MTF_FIT_ATTENTION] = { "attention", 0.10 },
    [MTF_FIT_SWEEPS] = { "sweeps", 0.20 },     [MTF_FIT_LINKS] = { "links", 0.25 },
    [MTF_FIT_NETWORK] = { "network", 0.50 },   [MTF_FIT_LAUNCH] = { "launch", 0.50 },
};

const char *mtf_fit_name(MtfFitParameter parameter) {
    return parameters[parameter].name;
}

/* ---- Applying a fit ---------------------------------------------------------------------------- */

static void scale_heads(MtfHeadTable *table, double factor) {
    for (int i = 0; i < table->count; i++) {
        table->row[i].forward = fmin(table->row[i].forward * factor, 1);
        table->row[i].backward = fmin(table->row[i].backward * factor, 1);
    }
}

void mtf_fit_apply(const MtfFit *fit, MtfMachine *machine) {
    MtfKernelRates *rates = &machine->kernels;
    double links = fmin(machine->derate.links * fit->factor[MTF_FIT_LINKS], 1);
    double network = machine->derate.network * machine->derate.links * fit->factor[MTF_FIT_NETWORK];
    machine->derate.network = (machine->network.switched ? fmin(network, 1) : network) / links;
    machine->derate.links = links;
    for (int i = 0; i < rates->shares; i++)
        rates->share[i].value = fmin(rates->share[i].value * fit->factor[MTF_FIT_PRODUCTS], 1);
    scale_heads(&rates->heads, fit->factor[MTF_FIT_ATTENTION]);
    scale_heads(&rates->portable, fit->factor[MTF_FIT_ATTENTION]);
    for (int i = 0; i < MTF_SWEEPS; i++)
        rates->sweep[i] = fmin(rates->sweep[i] * fit->factor[MTF_FIT_SWEEPS], 1);
    rates->launch_seconds *= fit->factor[MTF_FIT_LAUNCH];
}

/* ---- Gauss-Newton ------------------------------------------------------------------------------ */

/* One row: how far off, how that moves with each ln factor, and what it weighs. */
typedef struct {
    const MtfVerdict *verdict;
    MtfSoftware *software;
    double residual, slope[MTF_FITS], weight;
} Observation;

typedef struct {
    const MtfMachine *machine;
    GArray *observations;
    double ln[MTF_FITS];
    double normal[MTF_FITS][MTF_FITS], right[MTF_FITS];
} Problem;

static void observation_clear(void *data) {
    mtf_software_free(((Observation *)data)->software);
}

static double residual_at(const Problem *problem, const Observation *observation,
                          const double *ln) {
    MtfMachine machine = *problem->machine;
    MtfRunSeconds seconds;
    MtfFit fit;
    for (int i = 0; i < MTF_FITS; i++)
        fit.factor[i] = exp(ln[i]);
    mtf_fit_apply(&fit, &machine);
    const MtfVerdict *verdict = observation->verdict;
    double predicted =
        mtf_predict_row(verdict->row, &machine, observation->software, &seconds, NULL);
    double plan = verdict->step / verdict->seconds.step; /* over the closed form */
    return log(plan * predicted / verdict->row->measured);
}

/* Slopes by central differences of a hundredth. */
static void linearise(const Problem *problem, Observation *observation) {
    double ln[MTF_FITS];
    memcpy(ln, problem->ln, sizeof ln);
    observation->residual = residual_at(problem, observation, ln);
    for (int i = 0; i < MTF_FITS; i++) {
        ln[i] = problem->ln[i] + 0.01;
        double up = residual_at(problem, observation, ln);
        ln[i] = problem->ln[i] - 0.01;
        observation->slope[i] = (up - residual_at(problem, observation, ln)) / 0.02;
        ln[i] = problem->ln[i];
    }
}

static void add_observation(Problem *problem, const Observation *observation) {
    double off = fabs(observation->residual) / ROW_DEVIATION;
    double weight = observation->weight / (ROW_DEVIATION * ROW_DEVIATION);
    weight *= off > HUBER ? HUBER / off : 1;
    for (int i = 0; i < MTF_FITS; i++) {
        problem->right[i] -= weight * observation->slope[i] * observation->residual;
        for (int k = 0; k < MTF_FITS; k++)
            problem->normal[i][k] += weight * observation->slope[i] * observation->slope[k];
    }
}

static void pose(Problem *problem) {
    memset(problem->normal, 0, sizeof problem->normal);
    for (int i = 0; i < MTF_FITS; i++) {
        double prior = 1 / (parameters[i].deviation * parameters[i].deviation);
        problem->normal[i][i] = prior;
        problem->right[i] = -prior * problem->ln[i];
    }
    for (guint i = 0; i < problem->observations->len; i++) {
        Observation *observation = &g_array_index(problem->observations, Observation, i);
        linearise(problem, observation);
        add_observation(problem, observation);
    }
}

static void make_triangular(double a[MTF_FITS][MTF_FITS + 1]) {
    for (int i = 0; i < MTF_FITS; i++)
        for (int k = i + 1; k < MTF_FITS; k++) {
            double share = a[k][i] / a[i][i];
            for (int c = i; c <= MTF_FITS; c++)
                a[k][c] -= share * a[i][c];
        }
}

/* Solves normal x = right by elimination; normal is positive definite by the priors. */
static void solve(double normal[MTF_FITS][MTF_FITS], const double *right, double *x) {
    double a[MTF_FITS][MTF_FITS + 1];
    for (int i = 0; i < MTF_FITS; i++) {
        memcpy(a[i], normal[i], sizeof normal[i]);
        a[i][MTF_FITS] = right[i];
    }
    make_triangular(a);
    for (int i = MTF_FITS - 1; i >= 0; i--) {
        x[i] = a[i][MTF_FITS];
        for (int k = i + 1; k < MTF_FITS; k++)
            x[i] -= a[i][k] * x[k];
        x[i] /= a[i][i];
    }
}

/* The largest ln factor: three deviations, and no share of what the hardware could do above 1. */
static double highest(const MtfMachine *machine, MtfFitParameter parameter) {
    double most = 0;
    if (parameter == MTF_FIT_PRODUCTS)
        for (int i = 0; i < machine->kernels.shares; i++)
            most = fmax(most, machine->kernels.share[i].value);
    if (parameter == MTF_FIT_SWEEPS)
        for (int i = 0; i < MTF_SWEEPS; i++)
            most = fmax(most, machine->kernels.sweep[i]);
    if (parameter == MTF_FIT_LINKS)
        most = machine->derate.links;
    if (parameter == MTF_FIT_NETWORK && machine->network.switched)
        most = machine->derate.links * machine->derate.network;
    double bound = 3 * parameters[parameter].deviation;
    return most > 0 ? fmin(fmax(-log(most), 0), bound) : bound;
}

/* Step i is known: its column goes to the right side. */
static void settle(Problem *problem, int i, double step) {
    for (int k = 0; k < MTF_FITS; k++) {
        problem->right[k] -= problem->normal[k][i] * step;
        problem->normal[k][i] = problem->normal[i][k] = 0;
    }
    problem->normal[i][i] = 1;
    problem->right[i] = step;
}

/* Steps that would leave the bounds end there, and the others are solved for again, since they must
 * then explain what is left; each turn settles one at least. */
static void take_step(Problem *problem) {
    double step[MTF_FITS];
    bool inside = false;
    pose(problem);
    while (!inside) {
        inside = true;
        solve(problem->normal, problem->right, step);
        for (int i = 0; i < MTF_FITS; i++) {
            double low = -3 * parameters[i].deviation - problem->ln[i];
            double high = highest(problem->machine, (MtfFitParameter)i) - problem->ln[i];
            double bounded = CLAMP(step[i], low, high);
            if (fabs(bounded - step[i]) > 1e-12) {
                settle(problem, i, bounded);
                inside = false;
            }
        }
    }
    for (int i = 0; i < MTF_FITS; i++)
        problem->ln[i] += step[i];
}

/* ---- Rows -------------------------------------------------------------------------------------- */

static bool is_fitted(const MtfFitRows *rows, const MtfVerdict *verdict) {
    if (verdict->row->reason != NULL || verdict->row->machine == NULL ||
        strcmp(verdict->row->machine, rows->machine->name) != 0)
        return false;
    return rows->left_out == NULL || strcmp(rows->left_out(verdict), rows->label) != 0;
}

static int count_source(const MtfFitRows *rows, const char *source) {
    int count = 0;
    for (guint i = 0; i < rows->verdicts->len; i++) {
        const MtfVerdict *verdict = (const MtfVerdict *)rows->verdicts->pdata[i];
        count += is_fitted(rows, verdict) && strcmp(verdict->row->source, source) == 0;
    }
    return count;
}

static GArray *observations_of(const MtfFitRows *rows) {
    GArray *observations = g_array_new(FALSE, TRUE, sizeof(Observation));
    g_array_set_clear_func(observations, observation_clear);
    for (guint i = 0; i < rows->verdicts->len; i++) {
        const MtfVerdict *verdict = (const MtfVerdict *)rows->verdicts->pdata[i];
        if (!is_fitted(rows, verdict))
            continue;
        Observation observation = { .verdict = verdict };
        observation.software = mtf_software_load(verdict->software, NULL);
        observation.weight = 1 / sqrt(count_source(rows, verdict->row->source));
        if (observation.software != NULL)
            g_array_append_val(observations, observation);
    }
    return observations;
}

static double mean_error(const Problem *problem, const double *ln) {
    double sum = 0;
    for (guint i = 0; i < problem->observations->len; i++)
        sum += fabs(
            expm1(residual_at(problem, &g_array_index(problem->observations, Observation, i), ln)));
    return sum / MAX(problem->observations->len, 1);
}

/* The deviation left of parameter i: the root of the inverse's diagonal. */
static double doubt_of(Problem *problem, int i) {
    double unit[MTF_FITS] = { 0 }, column[MTF_FITS];
    unit[i] = 1;
    solve(problem->normal, unit, column);
    return sqrt(column[i]);
}

MtfFit mtf_fit(const MtfFitRows *rows) {
    static const double nothing[MTF_FITS] = { 0 };
    Problem problem = { .machine = rows->machine, .observations = observations_of(rows) };
    MtfFit fit = { .rows = (int)problem.observations->len, .crossed = NAN };
    fit.before = mean_error(&problem, nothing);
    for (int i = 0; i < STEPS; i++)
        take_step(&problem);
    pose(&problem);
    fit.after = mean_error(&problem, problem.ln);
    for (int i = 0; i < MTF_FITS; i++) {
        fit.factor[i] = exp(problem.ln[i]);
        fit.doubt[i] = doubt_of(&problem, i);
        fit.determined[i] = fit.doubt[i] < 0.8 * parameters[i].deviation;
    }
    g_array_unref(problem.observations);
    return fit;
}

/* ---- Cross-validation -------------------------------------------------------------------------- */

/* The error of the rows with one label under a fit to the others; 0 rows where there is none. */
static double crossed_error(const MtfFitRows *rows, MtfRowLabel of, const char *label, int *count) {
    MtfFitRows others = *rows;
    others.left_out = of;
    others.label = label;
    MtfFit fit = mtf_fit(&others);
    Problem problem = { .machine = rows->machine, .observations = observations_of(rows) };
    double sum = 0;
    *count = 0;
    for (int i = 0; i < MTF_FITS; i++)
        problem.ln[i] = log(fit.factor[i]);
    for (guint i = 0; i < problem.observations->len && fit.rows > 0; i++) {
        const Observation *o = &g_array_index(problem.observations, Observation, i);
        if (strcmp(of(o->verdict), label) != 0)
            continue;
        sum += fabs(expm1(residual_at(&problem, o, problem.ln)));
        (*count)++;
    }
    g_array_unref(problem.observations);
    return sum;
}

static const char *id_of(const MtfVerdict *verdict) {
    return verdict->row->id;
}

/* The different labels of the rows that are fitted. */
static GHashTable *labels_of(const MtfFitRows *rows, MtfRowLabel of) {
    GHashTable *labels = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < rows->verdicts->len; i++) {
        const MtfVerdict *verdict = (const MtfVerdict *)rows->verdicts->pdata[i];
        if (is_fitted(rows, verdict))
            g_hash_table_add(labels, (void *)of(verdict));
    }
    return labels;
}

double mtf_fit_cross(const MtfFitRows *rows) {
    g_autoptr(GHashTable) sources = labels_of(rows, mtf_verdict_source);
    MtfRowLabel of = g_hash_table_size(sources) > 1 ? mtf_verdict_source : id_of;
    g_autoptr(GHashTable) labels = labels_of(rows, of);
    g_autoptr(GList) list = g_list_sort(g_hash_table_get_keys(labels), (GCompareFunc)strcmp);
    double sum = 0;
    int counted = 0;
    for (GList *label = list; label != NULL && g_hash_table_size(labels) > 1; label = label->next) {
        int count = 0;
        sum += crossed_error(rows, of, (const char *)label->data, &count);
        counted += count;
    }
    return counted > 0 ? sum / counted : NAN;
}

/* ---- Runs unlike the others ---------------------------------------------------------------------- */

/* ln 1.25, and how many times as far off as the middle of all. */
#define STRAY_LEAST 0.223
#define STRAY_TIMES 5

static void clear_stray(void *data) {
    g_free(((MtfFitStray *)data)->id);
}

static gint compare_numbers(gconstpointer a, gconstpointer b) {
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

/* The middle of how far off rows are, without signs. */
static double middle_of(const GArray *off) {
    g_autoptr(GArray) sizes = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < off->len; i++)
        g_array_append_vals(sizes, (double[]){ fabs(g_array_index(off, double, i)) }, 1);
    g_array_sort(sizes, compare_numbers);
    return g_array_index(sizes, double, sizes->len / 2);
}

GArray *mtf_fit_strays(const MtfFitRows *rows, const MtfFit *fit) {
    Problem problem = { .machine = rows->machine, .observations = observations_of(rows) };
    g_autoptr(GArray) off = g_array_new(FALSE, FALSE, sizeof(double));
    GArray *strays = g_array_new(FALSE, FALSE, sizeof(MtfFitStray));
    g_array_set_clear_func(strays, clear_stray);
    for (int i = 0; i < MTF_FITS; i++)
        problem.ln[i] = log(fit->factor[i]);
    for (guint i = 0; i < problem.observations->len; i++) {
        double residual =
            residual_at(&problem, &g_array_index(problem.observations, Observation, i), problem.ln);
        g_array_append_val(off, residual);
    }
    double least = off->len >= 4 ? fmax(STRAY_LEAST, STRAY_TIMES * middle_of(off)) : INFINITY;
    for (guint i = 0; i < off->len; i++) {
        const Observation *o = &g_array_index(problem.observations, Observation, i);
        double residual = g_array_index(off, double, i);
        MtfFitStray stray = { .share = exp(-residual) };
        if (fabs(residual) < least)
            continue;
        stray.id = g_strdup(o->verdict->row->id);
        g_array_append_val(strays, stray);
    }
    g_array_unref(problem.observations);
    return strays;
}
