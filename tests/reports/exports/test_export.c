// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "reports/exports/export.h"
#include "tests/support/cases/report_plan.h"
#include "tests/support/cases/training_plan.h"

#include <string.h>

/* Takes the plan. */
static char *exported(MtfPlan *made, const char *to, GError **error) {
    g_autoptr(MtfPlan) plan = made;
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
    assert_non_null(facts);
    return mtf_export(facts, &(MtfExportRequest){ to, NULL }, error);
}

/* The small plan with batch over the rows and hidden over the columns. */
static void gives(const char *to, const char *expected) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text =
        exported(mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols"), to, &error);
    assert_null(error);
    assert_string_equal(text, expected);
}

/* The same plan; what follows the expected text are functions that use it. */
static void begins(const char *to, const char *expected) {
    g_autofree char *text =
        exported(mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols"), to, NULL);
    assert_non_null(text);
    text[MIN(strlen(text), strlen(expected))] = '\0';
    assert_string_equal(text, expected);
}

static void is_refused(MtfPlan *plan, const char *to, const char *words) {
    g_autoptr(GError) error = NULL;
    assert_null(exported(plan, to, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    if (strstr(error->message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, words);
}

TEST(mtf_is_two_gin_lines) {
    gives("mtf", "utils.run.mesh_shape = \"rows:2,cols:2\"\n"
                 "utils.run.layout_rules = \"batch:rows,hidden:cols\"\n");
}

TEST(jax_is_a_spec_a_tensor) {
    begins("jax", "import jax\n"
                  "from jax.sharding import AxisType, NamedSharding, PartitionSpec as P\n\n"
                  "AUTO = (AxisType.Auto,) * 2\n"
                  "mesh = jax.make_mesh((2, 2), (\"rows\", \"cols\"), axis_types=AUTO)\n\n"
                  "SPECS = {\n"
                  "    \"x\": P(\"rows\", None),\n"
                  "    \"w\": P(None, \"cols\"),\n"
                  "    \"h\": P(\"rows\", \"cols\"),\n"
                  "    \"y\": P(\"rows\", \"cols\"),\n"
                  "    \"l\": P(),\n"
                  "}\n"
                  "SHARDINGS = {k: NamedSharding(mesh, s) for k, s in SPECS.items()}\n");
}

TEST(dtensor_is_a_placement_a_mesh_axis) {
    begins("dtensor",
           "from torch.distributed.device_mesh import init_device_mesh\n"
           "from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor\n\n"
           "mesh = init_device_mesh(\"cuda\", (2, 2), mesh_dim_names=(\"rows\", "
           "\"cols\"))\n\n"
           "PLACEMENTS = {\n"
           "    \"x\": (Shard(0), Replicate()),\n"
           "    \"w\": (Replicate(), Shard(1)),\n"
           "    \"h\": (Shard(0), Shard(1)),\n"
           "    \"y\": (Shard(0), Shard(1)),\n"
           "    \"l\": (Replicate(), Replicate()),\n"
           "}\n");
}

TEST(shardy_closes_every_argument) {
    gives("shardy",
          "sdy.mesh @mesh = <[\"rows\"=2, \"cols\"=2]>\n"
          "func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"rows\"}, "
          "{}]>},\n"
          "                %w: tensor<4x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, "
          "{\"cols\"}]>}) {\n"
          "  return\n"
          "}\n");
}

/* cpu-cluster is a switch of nodes with more than four processors each. */
TEST(a_rankfile_fills_nodes_in_order) {
    gives("rankfile", "rank 0=+n0 slot=0\nrank 1=+n0 slot=1\nrank 2=+n0 slot=2\n"
                      "rank 3=+n0 slot=3\n");
}

/* h is split by both axes: a device a part; w by the columns: each part on both rows' devices. */
TEST(onnx_names_devices_or_groups_of_them) {
    g_autofree char *text =
        exported(mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols"), "onnx-text", NULL);
    assert_non_null(strstr(text, "ir_version: 11\n"));
    assert_non_null(strstr(text, "configuration { name: \"mesh\" num_devices: 4 }\n"));
    assert_non_null(
        strstr(text, "sharding_spec { tensor_name: \"h\" device: 0 device: 1 device: 2 device: 3 "
                     "sharded_dim { axis: 0 simple_sharding { dim_value: 8 num_shards: 2 } } "
                     "sharded_dim { axis: 1 simple_sharding { dim_value: 12 num_shards: 2 } } }"));
    assert_non_null(
        strstr(text, "sharding_spec { tensor_name: \"w\" device: -1 device: -2 "
                     "index_to_device_group_map { key: -1 value: 0 value: 2 } "
                     "index_to_device_group_map { key: -2 value: 1 value: 3 } "
                     "sharded_dim { axis: 1 simple_sharding { dim_value: 12 num_shards: 2 } } }"));
}

static MtfPlan *transformer(const char *mesh, const char *rules) {
    MtfTrainingPlan wanted = {
        .graph = "transformer-small", .sizes = MTF_TINY_TRANSFORMER, .mesh = mesh, .rules = rules
    };
    MtfPlan *plan = mtf_training_plan(&wanted, NULL);
    assert_non_null(plan);
    return mtf_test_read_back(plan);
}

/* A batch of 6 over 2 rows. */
TEST(megatron_is_flags_where_the_layout_is_its) {
    g_autofree char *text =
        exported(transformer("rows:2;cols:2", "batch:rows;heads:cols;d_ff:cols;vocab:cols"),
                 "megatron", NULL);
    assert_string_equal(text, "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 1 "
                              "--micro-batch-size 3 --global-batch-size 6\n");
}

static double number_at(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return item != NULL ? cJSON_GetNumberValue(item) : -1;
}

/* DeepSpeed refuses files in which train_batch_size is not the product of the others and the ranks of data
 * parallelism: here 6 = 3 x 1 x 2. */
TEST(deepspeed_is_a_configuration) {
    g_autofree char *text =
        exported(transformer("rows:2;cols:2", "batch:rows;heads:cols;d_ff:cols;vocab:cols"),
                 "deepspeed", NULL);
    cJSON *config = cJSON_Parse(text);
    assert_non_null(config);
    assert_true(number_at(config, "train_batch_size") == 6);
    assert_true(number_at(config, "train_micro_batch_size_per_gpu") == 3);
    assert_true(number_at(config, "gradient_accumulation_steps") == 1);
    assert_true(number_at(cJSON_GetObjectItem(config, "zero_optimization"), "stage") == 0);
    assert_true(number_at(cJSON_GetObjectItem(config, "tensor_parallel"), "autotp_size") == 2);
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(cJSON_GetObjectItem(config, "bf16"), "enabled")));
    cJSON_Delete(config);
}

/* MaxText's batch is per_device_batch_size times all devices times the accumulation: 1.5 x 4 = 6. */
TEST(maxtext_is_settings) {
    g_autofree char *text =
        exported(transformer("rows:2;cols:2", "batch:rows;heads:cols;d_ff:cols;vocab:cols"),
                 "maxtext", NULL);
    assert_string_equal(text, "ici_data_parallelism=2\nici_fsdp_parallelism=1\n"
                              "ici_tensor_parallelism=2\nici_tensor_sequence_parallelism=1\n"
                              "per_device_batch_size=1.5\ngradient_accumulation_steps=1\n"
                              "dtype=float32\nweight_dtype=float32\nremat_policy=none\n");
}

/* Replicated weights are its DDP; beside tensor parallelism it has none. */
TEST(torchtitan_is_flags) {
    g_autofree char *text = exported(transformer("rows:2", "batch:rows"), "torchtitan", NULL);
    assert_string_equal(text, "--parallelism.data_parallel_replicate_degree 2\n"
                              "--parallelism.data_parallel_shard_degree 1\n"
                              "--parallelism.tensor_parallel_degree 1\n"
                              "--training.seq_len 8\n--training.local_batch_size 3\n"
                              "--training.global_batch_size 6\n"
                              "--training.mixed_precision_param float32\n"
                              "--activation_checkpoint.mode none\n");
    is_refused(transformer("rows:2;cols:2", "batch:rows;heads:cols;d_ff:cols;vocab:cols"),
               "torchtitan", "splits activations by positions");
}

TEST(frameworks_say_what_stands_in_the_way) {
    is_refused(transformer("rows:2;cols:2", "batch:rows;length:cols"), "deepspeed",
               "mesh axis cols stands in the way");
    is_refused(transformer("rows:2;cols:2", "batch:rows"), "maxtext",
               "mesh axis cols stands in the way");
    is_refused(mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols"), "excel",
               "deepspeed, maxtext, torchtitan");
}

TEST(other_layouts_are_not_megatrons) {
    is_refused(transformer("rows:2;cols:2", "batch:rows;d_model:cols"), "megatron",
               "it splits \"d_model\" over cols");
    is_refused(transformer("rows:2;cols:2", "batch:rows;d_ff:cols"), "megatron",
               "it splits \"heads\" and \"d_ff\" differently");
    is_refused(transformer("rows:2;cols:2", "batch:rows"), "megatron", "mesh axis cols");
}

TEST(free_layouts_are_no_rules) {
    MtfTrainingPlan wanted = {
        .graph = "mlp", .sizes = "", .mesh = "rows:2;cols:2", .rules = "free", .seed = 7
    };
    MtfPlan *plan = mtf_training_plan(&wanted, NULL);
    assert_non_null(plan);
    is_refused(mtf_test_read_back(plan), "mtf", "; jax, dtensor and shardy can hold it");
    wanted.mesh = "a:5";
    plan = mtf_training_plan(&wanted, NULL);
    assert_non_null(plan);
    is_refused(mtf_test_read_back(plan), "mtf", "jax one that is searched with --even");
}

TEST(what_does_not_divide_is_said) {
    is_refused(mtf_test_small_plan("a:5", "batch:a"), "mtf",
               "dimension \"batch\" of 8 does not divide over a of 5");
    is_refused(mtf_test_small_plan("a:5", "batch:a"), "jax",
               "dimension \"batch\" of 8 in \"x\" does not divide by 5");
}

TEST(unknown_forms_are_bad_input) {
    is_refused(mtf_test_small_plan("a:2", "batch:a"), "tensorflow", "mtf, jax, dtensor");
}

/* rows of 2 and columns of 2 laid the other way round: processor 1 (0, 1) is on device 2. */
static MtfPlan *turned_plan(void) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols");
    plan->mapping = cJSON_Parse("{\"rows\": [{\"axis\": 1, \"size\": 2, \"stride\": 1}], \"cols\": "
                                "[{\"axis\": 0, \"size\": 2, \"stride\": 1}]}");
    plan->machine = cJSON_Parse(
        "{\"meshtf_machine\": 1, \"name\": \"torus\", \"torus\": [{\"size\": 2, \"wrap\": false, "
        "\"bandwidth\": 1e9, \"latency\": 1e-6}, {\"size\": 2, \"wrap\": false, \"bandwidth\": "
        "1e9, \"latency\": 1e-6}], \"device\": {\"flops\": {\"f32\": 1e12}, \"memory_bytes\": "
        "1000000000, \"memory_bandwidth\": 1e11}}");
    return mtf_test_read_back(g_steal_pointer(&plan));
}

/* One device a node of the torus: the node of a rank is its device. */
TEST(slurm_places_ranks_and_requeues) {
    g_autofree char *text = exported(turned_plan(), "slurm", NULL);
    assert_non_null(strstr(text, "#SBATCH --nodes=4\n#SBATCH --ntasks=4\n"));
    assert_non_null(strstr(text, "places=(0 2 1 3)\n"));
    assert_non_null(strstr(text, "#SBATCH --signal=B:USR1@300\n"));
    assert_non_null(strstr(text, "scontrol requeue"));
}

TEST(a_turned_mapping_turns_devices) {
    g_autofree char *ranks = exported(turned_plan(), "rankfile", NULL);
    assert_string_equal(ranks, "rank 0=+n0 slot=0\nrank 1=+n2 slot=0\nrank 2=+n1 slot=0\n"
                               "rank 3=+n3 slot=0\n");
    g_autofree char *jax = exported(turned_plan(), "jax", NULL);
    assert_non_null(strstr(
        jax, "DEVICES = [0, 2, 1, 3]\nmesh = jax.sharding.Mesh(np.array("
             "jax.devices())[DEVICES].reshape((2, 2)), (\"rows\", \"cols\"), axis_types=AUTO)"));
    g_autofree char *shardy = exported(turned_plan(), "shardy", NULL);
    assert_non_null(strstr(shardy, "<[\"rows\"=2, \"cols\"=2], device_ids=[0, 2, 1, 3]>"));
}

TEST(a_rankfile_names_its_hosts) {
    g_autoptr(MtfPlan) plan = turned_plan();
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
    g_autoptr(GError) error = NULL;
    g_autofree char *text = mtf_export(facts, &(MtfExportRequest){ "rankfile", "a,b,c,d" }, NULL);
    assert_string_equal(text, "rank 0=a slot=0\nrank 1=c slot=0\nrank 2=b slot=0\n"
                              "rank 3=d slot=0\n");
    assert_null(mtf_export(facts, &(MtfExportRequest){ "rankfile", "a,b,c" }, &error));
    assert_non_null(strstr(error->message, "names 3 nodes, and the plan needs 4"));
    assert_null(mtf_export(facts, &(MtfExportRequest){ "rankfile", "a,b c,d,e" }, NULL));
}

TEST(one_processor_is_a_mesh_of_one) {
    g_autofree char *jax = exported(mtf_test_small_plan("", ""), "jax", NULL);
    assert_non_null(strstr(jax, "jax.make_mesh((1,), (\"all\",), axis_types=AUTO)"));
    g_autofree char *torch = exported(mtf_test_small_plan("", ""), "dtensor", NULL);
    assert_non_null(strstr(torch, "\"x\": (Replicate(),),"));
}

TEST(names_cannot_leave_their_quotes) {
    g_autofree char *jax = exported(mtf_test_hostile_plan(), "jax", NULL);
    assert_non_null(strstr(jax, "    \"<script>w</script>\\\\N\\\"'&é\": P(None, \"c\\\\N\"),\n"));
    g_autofree char *shardy = exported(mtf_test_hostile_plan(), "shardy", NULL);
    assert_non_null(strstr(shardy, "%_script_w__script__N_____: tensor<4x12xf32>"));
}
