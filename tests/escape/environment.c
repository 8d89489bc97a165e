// Looks for the environment and the working directory of whoever started Everett.
// options: --env GIVEN=yes
// native: 0
// exec: 0
#include "escape.h"

extern char **environ;

int main(int argc, char **argv) {
    begin(argc, argv);
    for (char **variable = environ; *variable; variable++)
        if (strcmp(*variable, "GIVEN=yes")) {
            printf("%s\n", *variable);
            escaped("an inherited variable", 0);
        }
    must(getenv("GIVEN") && !strcmp(getenv("GIVEN"), "yes"), "the variable that was given");
    char folder[4096];
    must(getcwd(folder, sizeof folder) && strcmp(folder, "/") == 0, "the real folder");
    return end();
}
