/* ends: with 137 */
/* Exits with the code of a process that was killed by SIGKILL. */
int main(void)
{
    return 137;
}
