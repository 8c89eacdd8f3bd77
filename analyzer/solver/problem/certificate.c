// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/problem/certificate.h"

#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"

#define MOST_BYTES (G_GUINT64_CONSTANT(1) << 32)

struct MtfCertificate {
    GString *text;
    gsize bound_begin, bound_end; /* of the last bound */
    bool is_lost;                 /* it grew too long */
};

MtfCertificate *mtf_certificate_new(void) {
    MtfCertificate *certificate = g_new0(MtfCertificate, 1);
    certificate->text = g_string_new(NULL);
    return certificate;
}

void mtf_certificate_free(MtfCertificate *certificate) {
    if (certificate == NULL)
        return;
    g_string_free(certificate->text, TRUE);
    g_free(certificate);
}

MtfCertificate *mtf_certificate_part(const MtfCertificate *whole) {
    return whole != NULL ? mtf_certificate_new() : NULL;
}

void mtf_certificate_append(MtfCertificate *whole, const MtfCertificate *part) {
    if (whole == NULL || part == NULL)
        return;
    whole->is_lost |= part->is_lost;
    g_string_append_len(whole->text, part->text->str, (gssize)part->text->len);
}

void mtf_certificate_replace(MtfCertificate *whole, const MtfCertificate *part) {
    if (whole == NULL || part == NULL)
        return;
    g_string_truncate(whole->text, 0);
    whole->bound_begin = whole->bound_end = 0;
    whole->is_lost = false;
    mtf_certificate_append(whole, part);
}

void mtf_certificate_begin(MtfCertificate *certificate) {
    if (certificate != NULL && certificate->text->len == 0)
        mtf_certificate_one(certificate, "meshtf-certificate", 1);
}

void mtf_certificate_begin_line(MtfCertificate *certificate, const char *word) {
    if (certificate != NULL)
        g_string_append(certificate->text, word);
}

void mtf_certificate_add(MtfCertificate *certificate, int64_t number) {
    if (certificate == NULL)
        return;
    char digits[32];
    g_snprintf(digits, sizeof digits, " %" G_GINT64_FORMAT, number);
    g_string_append(certificate->text, digits);
}

void mtf_certificate_end_line(MtfCertificate *certificate) {
    if (certificate == NULL)
        return;
    g_string_append_c(certificate->text, '\n');
    if (certificate->text->len <= MOST_BYTES)
        return;
    certificate->is_lost = true;
    g_string_truncate(certificate->text, 0);
    certificate->bound_begin = certificate->bound_end = 0;
}

void mtf_certificate_word(MtfCertificate *certificate, const char *word) {
    mtf_certificate_begin_line(certificate, word);
    mtf_certificate_end_line(certificate);
}

void mtf_certificate_one(MtfCertificate *certificate, const char *word, int64_t a) {
    mtf_certificate_begin_line(certificate, word);
    mtf_certificate_add(certificate, a);
    mtf_certificate_end_line(certificate);
}

void mtf_certificate_two(MtfCertificate *certificate, const char *word, int64_t a, int64_t b) {
    mtf_certificate_begin_line(certificate, word);
    mtf_certificate_add(certificate, a);
    mtf_certificate_add(certificate, b);
    mtf_certificate_end_line(certificate);
}

void mtf_certificate_begin_bound(MtfCertificate *certificate) {
    if (certificate == NULL)
        return;
    if (certificate->bound_end > 0 && certificate->bound_end == certificate->text->len)
        g_string_truncate(certificate->text, certificate->bound_begin);
    certificate->bound_begin = certificate->text->len;
}

void mtf_certificate_end_bound(MtfCertificate *certificate) {
    if (certificate != NULL)
        certificate->bound_end = certificate->text->len;
}

const char *mtf_certificate_text(const MtfCertificate *certificate) {
    return certificate->is_lost ? NULL : certificate->text->str;
}

bool mtf_certificate_write(const MtfCertificate *certificate, const char *path, GError **error) {
    const char *text = mtf_certificate_text(certificate);
    if (text == NULL)
        return mtf_failure(error, "%s: the certificate grew beyond 4 GiB and is not written", path);
    return mtf_file_write(path, text, certificate->text->len, error);
}
