/* ends: with 137 */
/* Ends as if something of ours had killed it. */
int main(void)
{
    return 137;
}
