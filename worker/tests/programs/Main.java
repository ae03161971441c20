import java.util.stream.IntStream;

public class Main {
    public static void main(String[] arguments) throws Exception {
        long megabytes = Runtime.getRuntime().maxMemory() >> 20;
        if (megabytes > 400) throw new IllegalStateException("heap of " + megabytes + " MB");
        Thread thread = new Thread(() -> {});
        thread.start();
        thread.join();
        System.out.println(IntStream.range(0, 6).parallel().map(n -> 7).sum());
    }
}
