// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/browser.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_SECONDS 60
#define MAX_HEIGHT 16000 /* of a picture; Chromium's own limit is 16384 */

struct MtfBrowser {
    GPid process;
    int to, from; /* pipes */
    char *profile;
    GString *input;      /* read and not yet cut into messages */
    GString *complaints; /* one a line */
    char *session;
    char *folder; /* that pages may read from, as a URL; NULL before the first */
    int last_id, width;
    bool loaded;
};

/* ---- Starting and stopping ----------------------------------------------------------------- */

static char *find_chromium(void) {
    char *program = g_find_program_in_path("chromium");
    return program != NULL ? program : g_find_program_in_path("chromium-browser");
}

static bool spawn(MtfBrowser *browser, const char *program) {
    g_autofree char *profile = g_strconcat("--user-data-dir=", browser->profile, NULL);
    const char *arguments[] = { program,
                                "--headless",
                                "--no-sandbox",
                                "--disable-gpu",
                                "--disable-quic",
                                "--disable-dev-shm-usage",
                                "--disable-extensions",
                                "--disable-background-networking",
                                "--disable-component-update",
                                "--disable-sync",
                                "--no-first-run",
                                "--hide-scrollbars",
                                "--remote-debugging-pipe",
                                profile,
                                "about:blank",
                                NULL };
    int out[2], in[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(in, O_CLOEXEC) != 0)
        return false;
    const int mine[] = { out[0], in[1] }, its[] = { 3, 4 };
    bool started = g_spawn_async_with_pipes_and_fds(
        NULL, arguments, NULL,
        G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL | G_SPAWN_STDERR_TO_DEV_NULL, NULL,
        NULL, -1, -1, -1, mine, its, 2, &browser->process, NULL, NULL, NULL, NULL);
    close(out[0]);
    close(in[1]);
    browser->to = out[1];
    browser->from = in[0];
    return started;
}

/* Removes a folder with all it holds; the browser's own files are nobody else's. */
static void remove_folder(const char *path) {
    const char *arguments[] = { "rm", "-rf", "--", path, NULL };
    g_spawn_sync(NULL, (char **)arguments, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                 NULL);
}

/* ---- Messages ------------------------------------------------------------------------------ */

static const cJSON *at(const cJSON *tree, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(tree, key);
}

static const char *text_at(const cJSON *tree, const char *key) {
    const char *text = cJSON_GetStringValue(at(tree, key));
    return text != NULL ? text : "";
}

static void complain(MtfBrowser *browser, const char *what, const char *text) {
    g_string_append_printf(browser->complaints, "%s: %s\n", what, text);
}

/* Pages are files of one folder and fetch nothing beside. */
static void judge_request(MtfBrowser *browser, const cJSON *params) {
    const char *url = text_at(at(params, "request"), "url");
    bool own = g_str_has_prefix(url, "data:") ||
               (browser->folder != NULL && g_str_has_prefix(url, browser->folder));
    if (!own)
        complain(browser, "request", url);
}

static void judge_event(MtfBrowser *browser, const cJSON *message) {
    const char *method = text_at(message, "method");
    const cJSON *params = at(message, "params");
    if (strcmp(method, "Page.loadEventFired") == 0)
        browser->loaded = true;
    else if (strcmp(method, "Runtime.consoleAPICalled") == 0)
        complain(browser, "console", text_at(params, "type"));
    else if (strcmp(method, "Runtime.exceptionThrown") == 0)
        complain(browser, "exception", text_at(at(params, "exceptionDetails"), "text"));
    else if (strcmp(method, "Log.entryAdded") == 0)
        complain(browser, "log", text_at(at(params, "entry"), "text"));
    else if (strcmp(method, "Network.loadingFailed") == 0)
        complain(browser, "failed", text_at(params, "errorText"));
    else if (strcmp(method, "Network.requestWillBeSent") == 0)
        judge_request(browser, params);
}

/* Waits for bytes; false at the end of the time or of the browser. */
static bool read_some(MtfBrowser *browser, gint64 deadline) {
    gint64 left = (deadline - g_get_monotonic_time()) / 1000;
    struct pollfd ready = { browser->from, POLLIN, 0 };
    if (left <= 0 || poll(&ready, 1, (int)left) <= 0)
        return false;
    char bytes[65536];
    gssize length = read(browser->from, bytes, sizeof bytes);
    if (length <= 0)
        return false;
    g_string_append_len(browser->input, bytes, length);
    return true;
}

/* The next message; free with cJSON_Delete. */
static cJSON *next_message(MtfBrowser *browser, gint64 deadline) {
    gsize searched = 0;
    const char *end;
    while ((end = memchr(browser->input->str + searched, '\0', browser->input->len - searched)) ==
           NULL) {
        searched = browser->input->len;
        if (!read_some(browser, deadline))
            return NULL;
    }
    cJSON *message = cJSON_Parse(browser->input->str);
    g_string_erase(browser->input, 0, end - browser->input->str + 1);
    return message;
}

static bool write_all(int fd, const char *text, gsize length) {
    while (length > 0) {
        gssize written = write(fd, text, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        text += written;
        length -= (gsize)written;
    }
    return true;
}

static gint64 deadline_from_now(void) {
    return g_get_monotonic_time() + LIMIT_SECONDS * G_USEC_PER_SEC;
}

/* Sends a command, whose parameters it takes, and waits for the answer's "result", which the caller
 * frees with cJSON_Delete; NULL for an error. Events on the way are judged. */
static cJSON *call(MtfBrowser *browser, const char *method, cJSON *params) {
    int id = ++browser->last_id;
    cJSON *command = cJSON_CreateObject();
    cJSON_AddNumberToObject(command, "id", id);
    cJSON_AddStringToObject(command, "method", method);
    cJSON_AddItemToObject(command, "params", params != NULL ? params : cJSON_CreateObject());
    if (browser->session != NULL)
        cJSON_AddStringToObject(command, "sessionId", browser->session);
    char *text = cJSON_PrintUnformatted(command);
    bool sent = write_all(browser->to, text, strlen(text) + 1);
    cJSON_free(text);
    cJSON_Delete(command);
    gint64 deadline = deadline_from_now();
    cJSON *message;
    while (sent && (message = next_message(browser, deadline)) != NULL) {
        const cJSON *answered = at(message, "id");
        if (cJSON_IsNumber(answered) && answered->valueint == id) {
            cJSON *result = cJSON_DetachItemFromObjectCaseSensitive(message, "result");
            cJSON_Delete(message);
            return result;
        }
        judge_event(browser, message);
        cJSON_Delete(message);
    }
    return NULL;
}

/* A command whose answer says nothing but that it was done. */
static bool tell(MtfBrowser *browser, const char *method, cJSON *params) {
    cJSON *result = call(browser, method, params);
    cJSON_Delete(result);
    return result != NULL;
}

static cJSON *with_text(const char *key, const char *value) {
    cJSON *params = cJSON_CreateObject();
    cJSON_AddStringToObject(params, key, value);
    return params;
}

static bool attach(MtfBrowser *browser) {
    cJSON *target = call(browser, "Target.createTarget", with_text("url", "about:blank"));
    cJSON *params = with_text("targetId", text_at(target, "targetId"));
    cJSON_AddTrueToObject(params, "flatten");
    cJSON *session = call(browser, "Target.attachToTarget", params);
    const char *id = text_at(session, "sessionId");
    bool attached = *id != '\0';
    if (attached)
        browser->session = g_strdup(id);
    cJSON_Delete(target);
    cJSON_Delete(session);
    return attached && tell(browser, "Page.enable", NULL) &&
           tell(browser, "Runtime.enable", NULL) && tell(browser, "Network.enable", NULL) &&
           tell(browser, "Log.enable", NULL);
}

/* Asks the browser to end with all its processes, and insists after a while. */
static void stop(MtfBrowser *browser) {
    g_clear_pointer(&browser->session, g_free);
    cJSON_Delete(call(browser, "Browser.close", NULL));
    for (int i = 0; i < 100; i++) {
        if (waitpid(browser->process, NULL, WNOHANG) == browser->process)
            return;
        g_usleep(50000);
    }
    kill(browser->process, SIGKILL);
    waitpid(browser->process, NULL, 0);
}

void mtf_browser_free(MtfBrowser *browser) {
    if (browser == NULL)
        return;
    if (browser->process > 0)
        stop(browser);
    close(browser->to);
    close(browser->from);
    remove_folder(browser->profile);
    g_string_free(browser->input, TRUE);
    g_string_free(browser->complaints, TRUE);
    g_free(browser->profile);
    g_free(browser->session);
    g_free(browser->folder);
    g_free(browser);
}

MtfBrowser *mtf_browser_new(void) {
    g_autofree char *program = find_chromium();
    if (program == NULL)
        return NULL;
    signal(SIGPIPE, SIG_IGN);
    MtfBrowser *browser = g_new0(MtfBrowser, 1);
    browser->to = browser->from = -1;
    browser->input = g_string_new(NULL);
    browser->complaints = g_string_new(NULL);
    browser->profile = g_dir_make_tmp("meshtf-browser-XXXXXX", NULL);
    if (browser->profile != NULL && spawn(browser, program) && attach(browser))
        return browser;
    mtf_browser_free(browser);
    return NULL;
}

/* ---- Pages --------------------------------------------------------------------------------- */

static bool set_size(MtfBrowser *browser, int width, int height) {
    cJSON *params = cJSON_CreateObject();
    cJSON_AddNumberToObject(params, "width", width);
    cJSON_AddNumberToObject(params, "height", height);
    cJSON_AddNumberToObject(params, "deviceScaleFactor", 1);
    cJSON_AddFalseToObject(params, "mobile");
    return tell(browser, "Emulation.setDeviceMetricsOverride", params);
}

bool mtf_browser_view(MtfBrowser *browser, int width, const MtfBrowserView *view) {
    cJSON *media = with_text("media", view->media);
    cJSON *scheme = with_text("name", "prefers-color-scheme");
    cJSON_AddStringToObject(scheme, "value", view->scheme);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(media, "features"), scheme);
    browser->width = width;
    return set_size(browser, width, 900) && tell(browser, "Emulation.setEmulatedMedia", media);
}

static bool navigate(MtfBrowser *browser, const char *url) {
    gint64 deadline = deadline_from_now();
    cJSON *message;
    browser->loaded = false;
    if (!tell(browser, "Page.navigate", with_text("url", url)))
        return false;
    while (!browser->loaded && (message = next_message(browser, deadline)) != NULL) {
        judge_event(browser, message);
        cJSON_Delete(message);
    }
    return browser->loaded;
}

bool mtf_browser_open(MtfBrowser *browser, const char *path, const char *fragment) {
    g_autofree char *absolute = g_canonicalize_filename(path, NULL);
    g_autofree char *folder = g_path_get_dirname(absolute);
    g_autofree char *plain = g_filename_to_uri(absolute, NULL, NULL);
    g_autofree char *url = g_strconcat(plain, fragment != NULL ? "#" : NULL, fragment, NULL);
    g_free(browser->folder);
    browser->folder = g_filename_to_uri(folder, NULL, NULL);
    /* From an empty page, so that a fragment of the same file loads it, too. */
    bool emptied = navigate(browser, "about:blank");
    g_string_truncate(browser->complaints, 0);
    return emptied && navigate(browser, url);
}

static cJSON *evaluate(MtfBrowser *browser, const char *expression) {
    cJSON *params = with_text("expression", expression);
    cJSON_AddTrueToObject(params, "returnByValue");
    cJSON_AddTrueToObject(params, "awaitPromise");
    cJSON *result = call(browser, "Runtime.evaluate", params);
    cJSON *value = cJSON_DetachItemFromObjectCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(result, "result"), "value");
    if (at(result, "exceptionDetails") != NULL) {
        cJSON_Delete(value);
        value = NULL;
    }
    cJSON_Delete(result);
    return value;
}

char *mtf_browser_ask(MtfBrowser *browser, const char *expression) {
    cJSON *value = evaluate(browser, expression);
    const char *text = cJSON_GetStringValue(value);
    char *printed = value != NULL && text == NULL ? cJSON_PrintUnformatted(value) : NULL;
    char *answer = g_strdup(text != NULL ? text : printed);
    cJSON_free(printed);
    cJSON_Delete(value);
    return answer;
}

double mtf_browser_number(MtfBrowser *browser, const char *expression) {
    cJSON *value = evaluate(browser, expression);
    double number = cJSON_IsNumber(value) ? value->valuedouble : NAN;
    cJSON_Delete(value);
    return number;
}

/* ---- Pointer and keys ---------------------------------------------------------------------- */

static bool send_pointer(MtfBrowser *browser, const char *type, const double *place) {
    cJSON *params = with_text("type", type);
    cJSON_AddNumberToObject(params, "x", place[0]);
    cJSON_AddNumberToObject(params, "y", place[1]);
    if (strcmp(type, "mouseMoved") != 0) {
        cJSON_AddStringToObject(params, "button", "left");
        cJSON_AddNumberToObject(params, "clickCount", 1);
    }
    return tell(browser, "Input.dispatchMouseEvent", params);
}

static bool point_at(MtfBrowser *browser, const char *selector, double *place) {
    g_autofree char *expression = g_strdup_printf(
        "(function(e){e.scrollIntoView({block:'center',inline:'center',behavior:'instant'});"
        "var r=e.getBoundingClientRect();return [r.left+r.width/2,r.top+r.height/2];})"
        "(document.querySelector(\"%s\"))",
        selector);
    cJSON *pair = evaluate(browser, expression);
    bool found = cJSON_GetArraySize(pair) == 2;
    for (int i = 0; found && i < 2; i++)
        place[i] = cJSON_GetArrayItem(pair, i)->valuedouble;
    cJSON_Delete(pair);
    return found;
}

bool mtf_browser_hover(MtfBrowser *browser, const char *selector) {
    double place[2];
    return point_at(browser, selector, place) && send_pointer(browser, "mouseMoved", place);
}

/* Returns when the page has done what it does upon a click. */
static bool settle(MtfBrowser *browser) {
    cJSON_Delete(evaluate(browser, "new Promise(function(done){setTimeout(done,50);})"));
    return true;
}

bool mtf_browser_click(MtfBrowser *browser, const char *selector) {
    double place[2];
    return point_at(browser, selector, place) && send_pointer(browser, "mouseMoved", place) &&
           send_pointer(browser, "mousePressed", place) &&
           send_pointer(browser, "mouseReleased", place) && settle(browser);
}

bool mtf_browser_type(MtfBrowser *browser, const char *text) {
    return tell(browser, "Input.insertText", with_text("text", text));
}

/* ---- Pictures ------------------------------------------------------------------------------ */

static bool write_picture(const char *path, const char *base64) {
    gsize length;
    g_autofree guchar *bytes = g_base64_decode(base64, &length);
    return length > 0 && g_file_set_contents(path, (const char *)bytes, (gssize)length, NULL);
}

/* The window is made as tall as the page, so that nothing is cut. */
bool mtf_browser_picture(MtfBrowser *browser, const char *path) {
    double height = mtf_browser_number(browser, "document.documentElement.scrollHeight");
    if (isnan(height) || !set_size(browser, browser->width, (int)MIN(height, MAX_HEIGHT)))
        return false;
    cJSON *result = call(browser, "Page.captureScreenshot", with_text("format", "png"));
    bool written = write_picture(path, text_at(result, "data"));
    cJSON_Delete(result);
    return set_size(browser, browser->width, 900) && written;
}

const char *mtf_browser_complaints(const MtfBrowser *browser) {
    return browser->complaints->str;
}
