#include <pthread.h>
#include <stdio.h>

static void *add(void *sum)
{
    __atomic_add_fetch((int *)sum, 6, __ATOMIC_SEQ_CST);
    return NULL;
}

int main(void)
{
    pthread_t threads[7];
    int sum = 0;
    for (int at = 0; at < 7; at++)
        pthread_create(&threads[at], NULL, add, &sum);
    for (int at = 0; at < 7; at++)
        pthread_join(threads[at], NULL);
    printf("%d\n", sum);
    return 0;
}
