// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "reports/facts/timeline.h"
#include "tests/support/cases/report_plan.h"
#include "tests/support/trace_check.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

static char *trace_of(const MtfPlan *plan, MtfStepFacts **facts) {
    *facts = mtf_step_facts_new(plan, NULL);
    assert_non_null(*facts);
    return mtf_timeline_print(*facts);
}

static void passes_the_checker(MtfPlan *made) {
    g_autoptr(MtfPlan) plan = made;
    g_autoptr(MtfStepFacts) facts = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *trace = trace_of(plan, &facts);
    if (!mtf_trace_check(trace, &error))
        fail_msg("%s", error->message);
}

TEST(the_trace_passes_the_checker) {
    passes_the_checker(mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols"));
    passes_the_checker(mtf_test_small_plan("", ""));
    passes_the_checker(mtf_test_hostile_plan());
}

/* Microseconds of complete events on the threads of compute (1) and network (2). */
static double sum_of_durations(const char *trace, int *events) {
    cJSON *root = cJSON_Parse(trace);
    const cJSON *event;
    double sum = 0;
    cJSON_ArrayForEach(event, cJSON_GetObjectItem(root, "traceEvents")) {
        if (strcmp(cJSON_GetObjectItem(event, "ph")->valuestring, "X") != 0 ||
            cJSON_GetObjectItem(event, "tid")->valueint == 0)
            continue;
        sum += cJSON_GetObjectItem(event, "dur")->valuedouble;
        ++*events;
    }
    cJSON_Delete(root);
    return sum;
}

TEST(every_instruction_is_there_with_its_time) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols");
    g_autoptr(MtfStepFacts) facts = NULL;
    g_autofree char *trace = trace_of(plan, &facts);
    int events = 0;
    double sum = sum_of_durations(trace, &events);
    assert_int_equal(events, mtf_program_length(facts->program));
    assert_true(fabs(sum * 1000 - (double)facts->schedule->nanoseconds) < 1);
}

#define NAMES                                                               \
    "{'name':'process_name','ph':'M','pid':0,'tid':0,'args':{'name':'p'}}," \
    "{'name':'thread_name','ph':'M','pid':0,'tid':1,'args':{'name':'t'}},"

static bool passes(const char *events) {
    g_autofree char *text = g_strdup_printf("{'traceEvents':[%s]}", events);
    g_strdelimit(text, "'", '"');
    return mtf_trace_check(text, NULL);
}

TEST(the_checker_knows_right_from_wrong) {
    assert_true(passes(NAMES "{'name':'a','ph':'X','pid':0,'tid':1,'ts':0,'dur':2},"
                             "{'name':'b','ph':'X','pid':0,'tid':1,'ts':0.5,'dur':1.5},"
                             "{'name':'c','ph':'X','pid':0,'tid':1,'ts':2,'dur':0}"));
    /* b ends after a, which holds it */
    assert_false(passes(NAMES "{'name':'a','ph':'X','pid':0,'tid':1,'ts':0,'dur':2},"
                              "{'name':'b','ph':'X','pid':0,'tid':1,'ts':0.5,'dur':2}"));
    /* b starts before a and comes later */
    assert_false(passes(NAMES "{'name':'a','ph':'X','pid':0,'tid':1,'ts':3,'dur':1},"
                              "{'name':'b','ph':'X','pid':0,'tid':1,'ts':1,'dur':1}"));
    /* a duration below 0, no duration, a time that is text, no time */
    assert_false(passes(NAMES "{'name':'a','ph':'X','pid':0,'tid':1,'ts':0,'dur':-1}"));
    assert_false(passes(NAMES "{'name':'a','ph':'X','pid':0,'tid':1,'ts':0}"));
    assert_false(passes(NAMES "{'name':'a','ph':'X','pid':0,'tid':1,'ts':'0','dur':1}"));
    assert_false(passes(NAMES "{'name':'a','ph':'X','pid':0,'tid':1,'dur':1}"));
    /* a thread without a name, an unknown type, an event without a name, a counter of text */
    assert_false(passes(NAMES "{'name':'a','ph':'X','pid':0,'tid':2,'ts':0,'dur':1}"));
    assert_false(passes(NAMES "{'name':'a','ph':'B','pid':0,'tid':1,'ts':0}"));
    assert_false(passes(NAMES "{'ph':'X','pid':0,'tid':1,'ts':0,'dur':1}"));
    assert_false(passes(NAMES "{'name':'m','ph':'C','pid':0,'tid':0,'ts':0,'args':{'a':'1'}}"));
    /* no JSON, no list */
    assert_false(mtf_trace_check("{\"traceEvents\":[", NULL));
    assert_false(mtf_trace_check("{\"events\":[]}", NULL));
}
