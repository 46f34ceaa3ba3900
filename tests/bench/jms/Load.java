import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Several JMS producers and consumers on one queue, each with a connection of its own, as an application would have them: producers send persistent messages
 * of 1 KiB asynchronously (JMS 2.0, 7.3), a window of them not confirmed; consumers have sessions with AUTO_ACKNOWLEDGE, and receive in a loop or are
 * listeners. The client's options are its defaults. So that what is measured is what passes from end to end, producers wait while AHEAD messages have not arrived.
 *
 * <p>Arguments: URI, queue, "receive" or "listen", producers, consumers, seconds of warming up, seconds measured. Prints one line for programs: messages that
 * arrived in the measured time, its seconds, the messages of the whole run, and the processor time of this process in the measured time. Messages are numbered:
 * one that comes twice or never ends the run.
 */
public class Load {
    static final int BODY_OCTETS = 1024, WINDOW = 500, AHEAD = 10_000, PATIENCE_SECONDS = 60, NUMBERS_MAX = 16_000_000;

    final JmsConnectionFactory factory;
    final String queue;
    final AtomicInteger sent = new AtomicInteger(), confirmed = new AtomicInteger(), arrived = new AtomicInteger();
    /** A bit for each number. */
    final AtomicIntegerArray seen = new AtomicIntegerArray(NUMBERS_MAX / 32);
    final AtomicReference<String> problem = new AtomicReference<>();
    volatile boolean over;

    Load(String uri, String queue) {
        this.factory = new JmsConnectionFactory("guest", "guest", uri);
        this.queue = queue;
    }

    void fail(String sentence) {
        problem.compareAndSet(null, sentence);
        over = true;
    }

    void produce(Connection connection) {
        try {
            Session session = connection.createSession();
            MessageProducer producer = session.createProducer(session.createQueue(queue));
            Semaphore room = new Semaphore(WINDOW);
            CompletionListener listener = new CompletionListener() {
                @Override public void onCompletion(Message message) {
                    confirmed.incrementAndGet();
                    room.release();
                }

                @Override public void onException(Message message, Exception error) {
                    fail("a message was not accepted: " + error);
                    room.release();
                }
            };
            byte[] padding = new byte[BODY_OCTETS - Integer.BYTES];
            while (!over) {
                BytesMessage message = session.createBytesMessage();
                message.writeInt(sent.getAndIncrement());
                message.writeBytes(padding);
                while (sent.get() - arrived.get() > AHEAD && !over) TimeUnit.MILLISECONDS.sleep(1);
                room.acquire();
                producer.send(message, listener);
            }
            room.acquire(WINDOW);
        } catch (JMSException | InterruptedException error) {
            fail("a producer failed: " + error);
        }
    }

    /** Until it is closed. With a time-out the client would drain its credit at the end of it, which RabbitMQ 3.10 does not survive. */
    void receive(MessageConsumer consumer) {
        try {
            for (Message message = consumer.receive(); message != null; message = consumer.receive()) take(message);
        } catch (JMSException error) {
            fail("a consumer failed: " + error);
        }
    }

    void take(Message message) {
        try {
            int number = ((BytesMessage) message).readInt(), bit = 1 << number % 32;
            if ((seen.getAndUpdate(number / 32, bits -> bits | bit) & bit) != 0) fail("message " + number + " came twice");
            arrived.incrementAndGet();
        } catch (JMSException error) {
            fail("a consumer failed: " + error);
        }
    }

    Connection connect(List<Connection> opened) throws JMSException {
        Connection connection = factory.createConnection();
        opened.add(connection);
        connection.setExceptionListener(error -> fail("a connection broke: " + error));
        connection.start();
        return connection;
    }

    static double processorSeconds() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9;
    }

    void run(boolean listens, int producers, int consumers, int warmUp, int seconds) throws Exception {
        List<Connection> opened = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        Map<MessageConsumer, Thread> receiving = new LinkedHashMap<>();
        for (int i = 0; i < consumers; i++) {
            Session session = connect(opened).createSession();
            MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
            if (listens) {
                consumer.setMessageListener(this::take);
            } else {
                Thread thread = new Thread(() -> receive(consumer));
                receiving.put(consumer, thread);
                thread.start();
            }
        }
        for (int i = 0; i < producers; i++) {
            Connection connection = connect(opened);
            Thread thread = new Thread(() -> produce(connection));
            threads.add(thread);
            thread.start();
        }
        TimeUnit.SECONDS.sleep(warmUp);
        int before = arrived.get();
        double processor = processorSeconds();
        long began = System.nanoTime();
        TimeUnit.SECONDS.sleep(seconds);
        int messages = arrived.get() - before;
        double took = (System.nanoTime() - began) / 1e9, busy = processorSeconds() - processor;
        over = true;
        for (Thread thread : threads) thread.join();
        long ends = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        while (arrived.get() < confirmed.get() && problem.get() == null && System.nanoTime() < ends) TimeUnit.MILLISECONDS.sleep(20);
        if (arrived.get() != confirmed.get()) fail(arrived + " of " + confirmed + " messages arrived");
        for (MessageConsumer consumer : receiving.keySet()) consumer.close();
        for (Thread thread : receiving.values()) thread.join();
        if (problem.get() != null) throw new IllegalStateException(problem.get());
        for (Connection connection : opened) connection.close();
        System.out.printf("{\"messages\": %d, \"seconds\": %.3f, \"all\": %d, \"processor_seconds\": %.3f}%n", messages, took, confirmed.get(), busy);
    }

    public static void main(String[] arguments) {
        int[] numbers = new int[4];
        for (int i = 0; i < 4; i++) numbers[i] = Integer.parseInt(arguments[i + 3]);
        try {
            new Load(arguments[0], arguments[1]).run(arguments[2].equals("listen"), numbers[0], numbers[1], numbers[2], numbers[3]);
            System.exit(0);
        } catch (Exception error) {
            System.err.println(error);
            System.exit(1);
        }
    }
}
