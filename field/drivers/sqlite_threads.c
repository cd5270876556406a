/* Two threads write to one SQLite database in memory through a shared connection. */
#include <pthread.h>
#include <stdio.h>
#include <sqlite3.h>

static sqlite3 *db;

static void *insert(void *id) {
    char text[100];
    for (int i = 0; i < 20; i++) {
        snprintf(text, sizeof text, "INSERT INTO t VALUES (%ld, %d)", (long)id, i);
        if (sqlite3_exec(db, text, 0, 0, 0) != SQLITE_OK)
            return (void *)1;
    }
    return 0;
}

static int count(void *rows, int columns, char **values, char **names) {
    (void)columns, (void)names;
    return sscanf(values[0], "%d", (int *)rows) != 1;
}

int main(void) {
    pthread_t threads[2];
    int rows = 0;
    if (sqlite3_open_v2("file:m?mode=memory&cache=shared", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_URI, 0))
        return 2;
    if (sqlite3_exec(db, "CREATE TABLE t (a, b)", 0, 0, 0))
        return 3;
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, insert, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    sqlite3_exec(db, "SELECT count(*) FROM t", count, &rows, 0);
    sqlite3_close(db);
    puts(rows == 40 ? "ok" : "lost");
    return rows != 40;
}
