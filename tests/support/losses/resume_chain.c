// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/losses/resume_chain.h"

#include "runtime/session/session.h"
#include "runtime/support/agreement.h"
#include "tests/support/mpi_verdict.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static int world_rank(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/* A folder that all ranks know by its name. */
static char *shared_folder(void) {
    char name[256];
    static int count;
    g_snprintf(name, sizeof name, "%s/meshtf-chain-%d-%d", g_get_tmp_dir(), (int)getpid(), count++);
    PMPI_Bcast(name, (int)sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    return g_strdup(name);
}

static void remove_folder(const char *folder) {
    mtf_meet(MPI_COMM_WORLD);
    g_autoptr(GDir) files = world_rank() == 0 ? g_dir_open(folder, 0, NULL) : NULL;
    const char *name;
    while (files != NULL && (name = g_dir_read_name(files)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        unlink(path);
    }
    if (files != NULL)
        rmdir(folder);
}

static MtfTrainingPlan wanted_plan(const MtfChain *chain, const MtfChainLink *link) {
    return (MtfTrainingPlan){ .graph = chain->graph,
                              .sizes = chain->sizes,
                              .dtype = chain->dtype,
                              .mesh = link->mesh,
                              .rules = link->rules,
                              .seed = link->seed };
}

/* The ranks of a mesh, the first of the world; MPI_COMM_NULL on all others. */
static MPI_Comm first_ranks(int n) {
    MPI_Comm some;
    PMPI_Comm_split(MPI_COMM_WORLD, world_rank() < n ? 0 : MPI_UNDEFINED, world_rank(), &some);
    if (some == MPI_COMM_NULL)
        return some;
    MPI_Comm control = mtf_control_new(some);
    PMPI_Comm_free(&some);
    return control;
}

/* Trains a plan file; losses of its steps go where their step says. */
static void run(MPI_Comm control, const MtfRunOptions *options, double *losses) {
    MtfSession session;
    g_autoptr(GError) error = NULL;
    bool done = mtf_session_load(&session, control, options, &error) &&
                mtf_session_open(&session, &error) && mtf_session_train(&session, &error);
    mtf_expect(done, "%s", error != NULL ? error->message : "");
    for (int64_t i = 0; done && i < session.trained; i++)
        losses[session.done + i] = session.records[i].loss;
    mtf_session_close(&session);
}

/* Runs one link up to step `steps`. */
static void run_link(const MtfChain *chain, const MtfChainLink *link, const char *folder,
                     int64_t steps, double *losses) {
    MtfMesh mesh;
    g_autofree char *plan = g_strdup_printf("%s.plan.json", folder);
    mtf_mesh_parse(link->mesh, 0, &mesh, NULL);
    MtfTrainingPlan wanted = wanted_plan(chain, link);
    g_autoptr(GError) error = NULL;
    if (world_rank() == 0) {
        g_autoptr(MtfPlan) made = mtf_training_plan(&wanted, &error);
        mtf_expect(made != NULL && mtf_plan_save(made, plan, &error), "%s: %s", link->rules,
                   error != NULL ? error->message : "");
    }
    mtf_meet(MPI_COMM_WORLD);
    char *text[] = { (char[]){ "LICENSE" }, NULL };
    MtfRunOptions options = { .plan = plan,
                              .data = strcmp(chain->graph, "mlp") != 0 ? text : NULL,
                              .steps = steps,
                              .checkpoint = (char *)(guintptr)folder,
                              .checkpoint_every = 1000,
                              .keep = 1,
                              .resume = TRUE };
    MPI_Comm control = first_ranks(mtf_mesh_size(&mesh));
    if (control != MPI_COMM_NULL) {
        run(control, &options, losses);
        PMPI_Comm_free(&control);
    }
    mtf_meet(MPI_COMM_WORLD);
    if (world_rank() == 0)
        unlink(plan);
}

static void compare(const MtfChain *chain, const MtfChainLink *link, const double *truth,
                    const double *losses, int64_t step) {
    double allowed = chain->exact ? 0 : chain->dtype == MTF_F64 ? 1e-10 : 1e-4;
    double difference = fabs(losses[step - 1] - truth[step - 1]) / fabs(truth[step - 1]);
    mtf_expect(difference <= allowed, "%s on %s: step %d loses %.17g, not %.17g", link->rules,
               link->mesh, (int)step, losses[step - 1], truth[step - 1]);
}

static bool fits(const MtfChainLink *link) {
    MtfMesh mesh;
    int ranks;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return mtf_mesh_parse(link->mesh, 0, &mesh, NULL) && mtf_mesh_size(&mesh) <= ranks;
}

void mtf_check_chain(const MtfChain *chain) {
    static const MtfChainLink alone = { .mesh = "", .rules = "" };
    int64_t all = (int64_t)chain->n_links * chain->steps;
    g_autofree double *truth = g_new0(double, all);
    g_autofree double *losses = g_new0(double, all);
    g_autofree char *undisturbed = shared_folder();
    g_autofree char *folder = shared_folder();
    int64_t done = 0;
    run_link(chain, chain->exact ? &chain->links[0] : &alone, undisturbed, all, truth);
    remove_folder(undisturbed);
    for (int i = 0; i < chain->n_links; i++) {
        if (!fits(&chain->links[i]))
            continue;
        run_link(chain, &chain->links[i], folder, done + chain->steps, losses);
        for (int k = 1; k <= chain->steps && world_rank() == 0; k++)
            compare(chain, &chain->links[i], truth, losses, done + k);
        done += chain->steps;
    }
    mtf_expect(done > 0, "no link fits");
    remove_folder(folder);
}
