/* A landing controller: it asks for approval, and lands. Another thread watches the radio. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

int landing, approved;
int radio = 1;

static void ask_for_approval(void) {
    if (radio)
        approved = 1;
}

static void *control(void *unused) {
    ask_for_approval();
    if (approved)
        landing = 1; /* without asking whether the radio is still on */
    return unused;
}

static void *watch_radio(void *unused) {
    usleep(100000); /* the signal is lost some time later: after the landing, in every test so far */
    radio = 0;
    return unused;
}

int main(void) {
    pthread_t controller, watcher;
    pthread_create(&controller, NULL, control, NULL);
    pthread_create(&watcher, NULL, watch_radio, NULL);
    pthread_join(controller, NULL);
    pthread_join(watcher, NULL);
    puts(landing ? "landed" : "still in the air");
    return 0;
}
