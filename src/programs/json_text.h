/* JSON string output. */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include <stdio.h>

/* The first line of a text, quoted. */
static void put_text(FILE* out, const char* text) {
    fputc('"', out);
    for (; *text && *text != '\n'; ++text) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        if ((unsigned char)*text >= ' ') fputc(*text, out);
    }
    fputc('"', out);
}

#endif
