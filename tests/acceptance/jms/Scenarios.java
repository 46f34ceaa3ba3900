import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import jakarta.jms.TransactionRolledBackException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Enumeration;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.jms.JmsConnectionFactory;

/** What a JMS application does, each a method that throws when the broker does otherwise. Destinations are named after the scenario. */
public class Scenarios {
    static final long PATIENCE = 10_000;
    /** A message that must not come is waited for so long. */
    static final long NOTHING = 300;
    static final int INDIVIDUAL_ACKNOWLEDGE = 101, ARTEMIS_PRE_ACKNOWLEDGE = 100, NO_ACKNOWLEDGE = 257;

    final String uri, name;

    Scenarios(String uri, String name) {
        this.uri = uri;
        this.name = "jms." + name;
    }

    // -- what they share ---------------------------------------------------------------------------------------------------------------
    JmsConnectionFactory factory(String... options) {
        String all = "?jms.requestTimeout=15000&jms.connectTimeout=15000&amqp.drainTimeout=15000";
        for (String option : options) all += "&" + option;
        return new JmsConnectionFactory("guest", "guest", uri + all);
    }

    Connection connect(String clientId, String... options) throws JMSException {
        Connection connection = factory(options).createConnection();
        if (clientId != null) connection.setClientID(clientId);
        connection.start();
        return connection;
    }

    static void same(Object expected, Object found) {
        if (!Objects.equals(expected, found)) throw new AssertionError("expected " + expected + ", found " + found);
    }

    static String text(Message message) throws JMSException {
        if (message == null) throw new AssertionError("no message came");
        return ((TextMessage) message).getText();
    }

    static void sends(Session session, MessageProducer producer, String... texts) throws JMSException {
        for (String text : texts) producer.send(session.createTextMessage(text));
    }

    static void gets(MessageConsumer consumer, String... texts) throws JMSException {
        for (String text : texts) same(text, text(consumer.receive(PATIENCE)));
    }

    static void getsNothing(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(NOTHING);
        if (message != null) throw new AssertionError("a message came: " + message);
    }

    interface Work { void run() throws JMSException; }

    static <E extends JMSException> void fails(Class<E> kind, Work work) {
        try {
            work.run();
        } catch (JMSException error) {
            if (!kind.isInstance(error)) throw new AssertionError("expected " + kind.getSimpleName() + ", found " + error, error);
            return;
        }
        throw new AssertionError("no " + kind.getSimpleName());
    }

    // -- queues and topics --------------------------------------------------------------------------------------------------------------
    void queue() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession();
            Queue queue = session.createQueue(name);
            MessageProducer producer = session.createProducer(queue);
            for (int i = 0; i < 200; i++) sends(session, producer, "m" + i);
            MessageConsumer consumer = session.createConsumer(queue);
            for (int i = 0; i < 200; i++) gets(consumer, "m" + i);
            same(null, consumer.receiveNoWait());
            getsNothing(consumer);
        }
    }

    void topic() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession();
            Topic topic = session.createTopic(name);
            MessageConsumer one = session.createConsumer(topic), other = session.createConsumer(topic);
            sends(session, session.createProducer(topic), "a", "b");
            gets(one, "a", "b");
            gets(other, "a", "b");
        }
    }

    void everyKindOfMessage() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession();
            Queue queue = session.createQueue(name);
            MessageProducer producer = session.createProducer(queue);
            MessageConsumer consumer = session.createConsumer(queue);
            BytesMessage bytes = session.createBytesMessage();
            bytes.writeBytes(new byte[] {1, 2, 3});
            producer.send(bytes);
            same(3L, ((BytesMessage) consumer.receive(PATIENCE)).getBodyLength());
            MapMessage map = session.createMapMessage();
            map.setInt("a", 1);
            map.setString("b", "c");
            producer.send(map);
            MapMessage gotMap = (MapMessage) consumer.receive(PATIENCE);
            same(1, gotMap.getInt("a"));
            same("c", gotMap.getString("b"));
            StreamMessage stream = session.createStreamMessage();
            stream.writeInt(4);
            stream.writeString("x");
            producer.send(stream);
            StreamMessage gotStream = (StreamMessage) consumer.receive(PATIENCE);
            same(4, gotStream.readInt());
            same("x", gotStream.readString());
            ObjectMessage object = session.createObjectMessage(new ArrayList<>(List.of("z")));
            producer.send(object);
            same(List.of("z"), ((ObjectMessage) consumer.receive(PATIENCE)).getObject());
            producer.send(session.createMessage());
            if (consumer.receive(PATIENCE) == null) throw new AssertionError("a message without a body did not come");
        }
    }

    void headersAndProperties() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession();
            Queue queue = session.createQueue(name);
            TextMessage sent = session.createTextMessage("t\u00e9xt");
            sent.setIntProperty("number", 5);
            sent.setBooleanProperty("yes", true);
            sent.setDoubleProperty("half", 0.5);
            sent.setJMSCorrelationID("corr");
            sent.setJMSType("kind");
            sent.setJMSReplyTo(session.createTopic("replies"));
            session.createProducer(queue).send(sent, DeliveryMode.NON_PERSISTENT, 7, 60_000);
            TextMessage got = (TextMessage) session.createConsumer(queue).receive(PATIENCE);
            same("t\u00e9xt", text(got));
            same(5, got.getIntProperty("number"));
            same(true, got.getBooleanProperty("yes"));
            same(0.5, got.getDoubleProperty("half"));
            same("corr", got.getJMSCorrelationID());
            same("kind", got.getJMSType());
            same("replies", ((Topic) got.getJMSReplyTo()).getTopicName());
            same(name, ((Queue) got.getJMSDestination()).getQueueName());
            same(7, got.getJMSPriority());
            same(DeliveryMode.NON_PERSISTENT, got.getJMSDeliveryMode());
            same(sent.getJMSMessageID(), got.getJMSMessageID());
            same(sent.getJMSTimestamp(), got.getJMSTimestamp());
            same(sent.getJMSExpiration(), got.getJMSExpiration());
            same(false, got.getJMSRedelivered());
            same(1, got.getIntProperty("JMSXDeliveryCount"));
        }
    }

    void selectors() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession();
            Queue queue = session.createQueue(name);
            MessageProducer producer = session.createProducer(queue);
            for (int i = 0; i < 6; i++) {
                TextMessage message = session.createTextMessage("m" + i);
                message.setIntProperty("n", i);
                message.setJMSType(i % 2 == 0 ? "even" : "odd");
                message.setJMSCorrelationID("c" + i);
                producer.send(message);
            }
            gets(session.createConsumer(queue, "n > 3 AND JMSType = 'odd'"), "m5");
            gets(session.createConsumer(queue, "JMSCorrelationID = 'c4' AND JMSPriority = 4 AND JMSDeliveryMode = 'PERSISTENT'"), "m4");
            gets(session.createConsumer(queue), "m0", "m1", "m2", "m3");
        }
    }

    void aSelectorThatIsWrong() throws Exception {
        try (Connection connection = connect(null, "jms.validateSelector=false")) {
            Session session = connection.createSession();
            fails(JMSException.class, () -> session.createConsumer(session.createQueue(name), "a = = 3"));
        }
    }

    void noLocal() throws Exception {
        try (Connection own = connect(name); Connection other = connect(null)) {
            Session session = own.createSession(), others = other.createSession();
            Topic topic = session.createTopic(name);
            MessageConsumer consumer = session.createConsumer(topic, null, true);
            sends(session, session.createProducer(topic), "mine");
            sends(others, others.createProducer(topic), "another's");
            gets(consumer, "another's");
            getsNothing(consumer);
        }
    }

    void browser() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession();
            Queue queue = session.createQueue(name);
            MessageProducer producer = session.createProducer(queue);
            for (int i = 0; i < 1500; i++) sends(session, producer, "m" + i);
            QueueBrowser browser = session.createBrowser(queue);
            int seen = 0;
            for (Enumeration<?> all = browser.getEnumeration(); all.hasMoreElements(); seen++) same("m" + seen, text((Message) all.nextElement()));
            same(1500, seen);
            browser.close();
            same(false, session.createBrowser(session.createQueue(name + ".none")).getEnumeration().hasMoreElements());
            Message first = session.createConsumer(queue).receive(PATIENCE);
            same("m0", text(first));
            same(false, first.getJMSRedelivered());
        }
    }

    void priorities() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession();
            Queue queue = session.createQueue(name);
            MessageProducer producer = session.createProducer(queue);
            for (int i = 0; i < 10; i++) {
                producer.setPriority(i);
                sends(session, producer, "" + i);
            }
            gets(session.createConsumer(queue), "9", "8", "7", "6", "5", "4", "3", "2", "1", "0");
        }
    }

    void expiredMessagesAreAmongTheDead() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession();
            Queue queue = session.createQueue(name);
            MessageProducer producer = session.createProducer(queue);
            producer.setTimeToLive(100);
            sends(session, producer, "late");
            Thread.sleep(300);
            getsNothing(session.createConsumer(queue));
            String selector = "JMS_SUN_DMQ_UNDELIVERED_REASON = 'EXPIRED' AND original_destination = 'queue/" + name + "'";
            gets(session.createConsumer(session.createQueue("mq.sys.dmq"), selector), "late");
        }
    }

    void delayedDelivery() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession();
            Queue queue = session.createQueue(name);
            MessageProducer producer = session.createProducer(queue);
            producer.setDeliveryDelay(1000);
            long began = System.currentTimeMillis();
            sends(session, producer, "later");
            MessageConsumer consumer = session.createConsumer(queue);
            getsNothing(consumer);
            gets(consumer, "later");
            if (System.currentTimeMillis() - began < 950) throw new AssertionError("it came too early");
        }
    }

    void largeMessages() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession();
            Queue queue = session.createQueue(name);
            MessageProducer producer = session.createProducer(queue);
            MessageConsumer consumer = session.createConsumer(queue);
            for (int size : new int[] {200_000, 262_144, 262_145, 1_500_000, 20_000_000}) {
                byte[] octets = new byte[size], got = new byte[size];
                new Random(size).nextBytes(octets);
                BytesMessage message = session.createBytesMessage();
                message.writeBytes(octets);
                producer.send(message);
                BytesMessage came = (BytesMessage) consumer.receive(3 * PATIENCE);
                same((long) size, came.getBodyLength());
                came.readBytes(got);
                if (!Arrays.equals(octets, got)) throw new AssertionError("other octets came");
            }
        }
    }

    void listenersAndAsynchronousSends() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession(), producing = connection.createSession();
            Queue queue = session.createQueue(name);
            CountDownLatch came = new CountDownLatch(1000), done = new CountDownLatch(1000);
            session.createConsumer(queue).setMessageListener(message -> came.countDown());
            MessageProducer producer = producing.createProducer(queue);
            for (int i = 0; i < 1000; i++) {
                producer.send(producing.createTextMessage("m" + i), new CompletionListener() {
                    public void onCompletion(Message message) { done.countDown(); }

                    public void onException(Message message, Exception error) { error.printStackTrace(); }
                });
            }
            same(true, done.await(PATIENCE, TimeUnit.MILLISECONDS));
            same(true, came.await(PATIENCE, TimeUnit.MILLISECONDS));
        }
    }

    void messageGroupsStayTogether() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession(), other = connection.createSession();
            Queue queue = session.createQueue(name);
            MessageConsumer one = session.createConsumer(queue), two = other.createConsumer(queue);
            Session producing = connection.createSession();
            MessageProducer producer = producing.createProducer(queue);
            for (int i = 0; i < 10; i++) {
                TextMessage message = producing.createTextMessage("m" + i);
                message.setStringProperty("JMSXGroupID", "group");
                producer.send(message);
            }
            Message first = one.receive(1000);
            MessageConsumer owner = first != null ? one : two, rest = first != null ? two : one;
            for (int i = first != null ? 1 : 0; i < 10; i++) gets(owner, "m" + i);
            getsNothing(rest);
        }
    }

    // -- subscriptions ------------------------------------------------------------------------------------------------------------------
    void durableSubscription() throws Exception {
        try (Connection connection = connect(name)) {
            Session session = connection.createSession();
            Topic topic = session.createTopic(name);
            MessageConsumer consumer = session.createDurableSubscriber(topic, "subscription");
            MessageProducer producer = session.createProducer(topic);
            sends(session, producer, "a");
            gets(consumer, "a");
            consumer.close();
            sends(session, producer, "kept");
        }
        try (Connection connection = connect(name)) {
            Session session = connection.createSession();
            MessageConsumer consumer = session.createDurableConsumer(session.createTopic(name), "subscription");
            gets(consumer, "kept");
            fails(JMSException.class, () -> session.createDurableConsumer(session.createTopic(name), "subscription"));
            fails(JMSException.class, () -> session.unsubscribe("subscription"));
            consumer.close();
            session.unsubscribe("subscription");
            fails(InvalidDestinationException.class, () -> session.unsubscribe("subscription"));
        }
    }

    void aDurableSubscriptionWithAnotherSelectorIsANewOne() throws Exception {
        try (Connection connection = connect(name)) {
            Session session = connection.createSession();
            Topic topic = session.createTopic(name);
            session.createDurableConsumer(topic, "subscription", "a = 1", false).close();
            sends(session, session.createProducer(topic), "lost");
            MessageConsumer consumer = session.createDurableConsumer(topic, "subscription");
            sends(session, session.createProducer(topic), "new");
            gets(consumer, "new");
            consumer.close();
            session.unsubscribe("subscription");
        }
    }

    void sharedSubscription() throws Exception {
        for (String clientId : new String[] {null, name}) {
            try (Connection connection = connect(clientId); Connection producing = connect(null)) {
                Session session = connection.createSession(), other = connection.createSession(), sender = producing.createSession();
                Topic topic = session.createTopic(name);
                MessageConsumer one = session.createSharedConsumer(topic, "shared"), two = other.createSharedConsumer(topic, "shared");
                for (int i = 0; i < 10; i++) sends(sender, sender.createProducer(topic), "m" + i);
                same(10, count(one) + count(two));
            }
        }
    }

    void sharedDurableSubscription() throws Exception {
        for (String clientId : new String[] {null, name}) {
            try (Connection connection = connect(clientId)) {
                Session session = connection.createSession(), other = connection.createSession();
                Topic topic = session.createTopic(name);
                MessageConsumer one = session.createSharedDurableConsumer(topic, name + "s"), two = other.createSharedDurableConsumer(topic, name + "s");
                for (int i = 0; i < 10; i++) sends(session, session.createProducer(topic), "m" + i);
                same(10, count(one) + count(two));
                one.close();
                two.close();
                sends(session, session.createProducer(topic), "kept");
                MessageConsumer again = session.createSharedDurableConsumer(topic, name + "s");
                gets(again, "kept");
                again.close();
                session.unsubscribe(name + "s");
            }
        }
    }

    static int count(MessageConsumer consumer) throws JMSException {
        int count = 0;
        while (consumer.receive(NOTHING) != null) count++;
        return count;
    }

    // -- temporary destinations -----------------------------------------------------------------------------------------------------------
    void requestAndReply() throws Exception {
        try (Connection client = connect(null); Connection server = connect(null)) {
            Session asking = client.createSession(), answering = server.createSession();
            MessageConsumer requests = answering.createConsumer(answering.createQueue(name));
            TemporaryQueue replies = asking.createTemporaryQueue();
            MessageConsumer consumer = asking.createConsumer(replies);
            TextMessage request = asking.createTextMessage("ask");
            request.setJMSReplyTo(replies);
            asking.createProducer(asking.createQueue(name)).send(request);
            Message got = requests.receive(PATIENCE);
            same("ask", text(got));
            answering.createProducer(null).send(got.getJMSReplyTo(), answering.createTextMessage("answer"));
            gets(consumer, "answer");
            fails(JMSException.class, () -> answering.createConsumer(got.getJMSReplyTo()));
            fails(JMSException.class, replies::delete);
            consumer.close();
            replies.delete();
            fails(JMSException.class, () -> sends(answering, answering.createProducer(got.getJMSReplyTo()), "too late"));
        }
    }

    void temporaryTopic() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession();
            TemporaryTopic topic = session.createTemporaryTopic();
            MessageConsumer one = session.createConsumer(topic), two = session.createConsumer(topic);
            sends(session, session.createProducer(topic), "a");
            gets(one, "a");
            gets(two, "a");
        }
    }

    // -- acknowledging ------------------------------------------------------------------------------------------------------------------
    void clientAcknowledge() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
            Queue queue = session.createQueue(name);
            sends(session, session.createProducer(queue), "a", "b", "c", "d");
            MessageConsumer consumer = session.createConsumer(queue);
            gets(consumer, "a");
            consumer.receive(PATIENCE).acknowledge();
            gets(consumer, "c");
            session.recover();
            Message again = consumer.receive(PATIENCE);
            same("c", text(again));
            same(true, again.getJMSRedelivered());
            session.close();
            session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
            consumer = session.createConsumer(queue);
            Set<String> left = new TreeSet<>(List.of(text(consumer.receive(PATIENCE)), text(consumer.receive(PATIENCE))));
            same(Set.of("c", "d"), left);
        }
    }

    void individualAcknowledge() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession(INDIVIDUAL_ACKNOWLEDGE);
            Queue queue = session.createQueue(name);
            sends(session, session.createProducer(queue), "a", "b", "c");
            MessageConsumer consumer = session.createConsumer(queue);
            gets(consumer, "a");
            consumer.receive(PATIENCE).acknowledge();
            session.close();
            consumer = connection.createSession().createConsumer(queue);
            same(Set.of("a", "c"), Set.of(text(consumer.receive(PATIENCE)), text(consumer.receive(PATIENCE))));
        }
    }

    void dupsOkAndNoAcknowledge() throws Exception {
        for (int mode : new int[] {Session.DUPS_OK_ACKNOWLEDGE, NO_ACKNOWLEDGE, ARTEMIS_PRE_ACKNOWLEDGE}) {
            try (Connection connection = connect(null)) {
                Session session = connection.createSession(mode);
                Queue queue = session.createQueue(name + mode);
                MessageProducer producer = session.createProducer(queue);
                for (int i = 0; i < 50; i++) sends(session, producer, "m" + i);
                MessageConsumer consumer = session.createConsumer(queue);
                for (int i = 0; i < 50; i++) gets(consumer, "m" + i);
                session.close();
                getsNothing(connection.createSession().createConsumer(queue));
            }
        }
    }

    void whatWasOnlyPrefetchedIsNotRedelivered() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession();
            Queue queue = session.createQueue(name);
            sends(session, session.createProducer(queue), "a", "b", "c");
            MessageConsumer consumer = session.createConsumer(queue);
            gets(consumer, "a");
            consumer.close();
            consumer = session.createConsumer(queue);
            for (String text : new String[] {"b", "c"}) {
                Message message = consumer.receive(PATIENCE);
                same(text, text(message));
                same(1, message.getIntProperty("JMSXDeliveryCount"));
            }
        }
    }

    void withoutPrefetch() throws Exception {
        try (Connection connection = connect(null, "jms.prefetchPolicy.all=0")) {
            Session session = connection.createSession();
            Queue queue = session.createQueue(name);
            sends(session, session.createProducer(queue), "a", "b", "c");
            MessageConsumer consumer = session.createConsumer(queue);
            gets(consumer, "a", "b", "c");
            same(null, consumer.receiveNoWait());
            getsNothing(consumer);
        }
    }

    // -- transactions -------------------------------------------------------------------------------------------------------------------
    void transactions() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession(Session.SESSION_TRANSACTED), other = connection.createSession();
            Queue queue = session.createQueue(name);
            MessageProducer producer = session.createProducer(queue);
            MessageConsumer outside = other.createConsumer(queue);
            sends(session, producer, "a");
            getsNothing(outside);
            session.commit();
            gets(outside, "a");
            sends(session, producer, "never");
            session.rollback();
            getsNothing(outside);
            outside.close();
            sends(session, producer, "b");
            session.commit();
            MessageConsumer consumer = session.createConsumer(queue);
            gets(consumer, "b");
            session.rollback();
            Message again = consumer.receive(PATIENCE);
            same("b", text(again));
            same(true, again.getJMSRedelivered());
            same(2, again.getIntProperty("JMSXDeliveryCount"));
            session.commit();
            getsNothing(consumer);
        }
    }

    void manyTransactions() throws Exception {
        try (Connection connection = connect(null)) {
            Session session = connection.createSession(Session.SESSION_TRANSACTED);
            Queue from = session.createQueue(name + ".from"), to = session.createQueue(name + ".to");
            MessageProducer producer = session.createProducer(from), forwarding = session.createProducer(to);
            for (int i = 0; i < 100; i++) sends(session, producer, "m" + i);
            session.commit();
            MessageConsumer consumer = session.createConsumer(from);
            for (int i = 0; i < 100; i++) {
                forwarding.send(consumer.receive(PATIENCE));
                session.commit();
            }
            session.close();
            MessageConsumer result = connection.createSession().createConsumer(to);
            for (int i = 0; i < 100; i++) gets(result, "m" + i);
        }
    }

    void poisonIsDead() throws Exception {
        try (Connection connection = connect(null, "jms.redeliveryPolicy.maxRedeliveries=1")) {
            Session session = connection.createSession(Session.SESSION_TRANSACTED);
            Queue queue = session.createQueue(name);
            sends(session, session.createProducer(queue), "poison");
            session.commit();
            MessageConsumer consumer = session.createConsumer(queue);
            gets(consumer, "poison");
            session.rollback();
            gets(consumer, "poison");
            session.rollback();
            same(null, consumer.receive(4000));
            Session looking = connection.createSession();
            gets(looking.createConsumer(looking.createQueue("mq.sys.dmq"), "original_destination = 'queue/" + name + "'"), "poison");
        }
    }

    // -- connections --------------------------------------------------------------------------------------------------------------------
    void aClientIdentifierIsOneConnections() throws Exception {
        try (Connection connection = connect(name)) {
            fails(InvalidClientIDException.class, () -> connect(name).close());
        }
        connect(name).close();
    }

    void wrongCredentials() throws Exception {
        for (String mechanism : new String[] {"PLAIN", "SCRAM-SHA-256"}) {
            JmsConnectionFactory factory = factory("amqp.saslMechanisms=" + mechanism);
            fails(JMSSecurityException.class, () -> factory.createConnection("guest", "wrong").start());
            factory.createConnection("guest", "guest").close();
        }
    }

    /** Not among those that are played together: says when it is in the middle of a transaction, and goes on when it reads a line. */
    static void killedInATransaction(String uri, String name) throws Exception {
        JmsConnectionFactory factory = new JmsConnectionFactory("guest", "guest", "failover:(" + uri + ")?failover.maxReconnectAttempts=-1");
        try (Connection connection = factory.createConnection()) {
            connection.start();
            Session session = connection.createSession(Session.SESSION_TRANSACTED);
            MessageProducer first = session.createProducer(session.createQueue(name + ".from"));
            sends(session, first, "a");
            session.commit();
            MessageConsumer consumer = session.createConsumer(session.createQueue(name + ".from"));
            MessageProducer forwarding = session.createProducer(session.createQueue(name + ".to"));
            forwarding.send(session.createTextMessage(text(consumer.receive(PATIENCE)) + "!"));
            System.out.println("in the middle");
            System.in.read();
            fails(TransactionRolledBackException.class, session::commit);
            Message again = consumer.receive(6 * PATIENCE);
            same("a", text(again));
            same(true, again.getJMSRedelivered());
            forwarding.send(session.createTextMessage(text(again) + "!"));
            session.commit();
            session.close();
            Session looking = connection.createSession();
            MessageConsumer result = looking.createConsumer(looking.createQueue(name + ".to"));
            gets(result, "a!");
            getsNothing(result);
            getsNothing(looking.createConsumer(looking.createQueue(name + ".from")));
        }
        System.out.println("well");
    }

    /** Not among them either: over TLS, as whom the certificate names. */
    static void byCertificate(String uri, String name) throws Exception {
        try (Connection connection = new JmsConnectionFactory(uri).createConnection()) {
            connection.start();
            Session session = connection.createSession();
            Queue queue = session.createQueue(name);
            sends(session, session.createProducer(queue), "a");
            gets(session.createConsumer(queue), "a");
        }
        System.out.println("well");
    }

    // -- running ------------------------------------------------------------------------------------------------------------------------
    /** Arguments: the broker's URI, a word that makes names unique, scenarios. A line for each: its name, and what went wrong, if anything. */
    public static void main(String[] arguments) throws Exception {
        if (arguments[2].equals("killedInATransaction")) {
            killedInATransaction(arguments[0], "jms.killed." + arguments[1]);
            System.exit(0);
        }
        if (arguments[2].equals("byCertificate")) {
            byCertificate(arguments[0], "jms.certificate." + arguments[1]);
            System.exit(0);
        }
        for (String scenario : Arrays.copyOfRange(arguments, 2, arguments.length)) {
            String problem = "";
            try {
                Scenarios.class.getDeclaredMethod(scenario).invoke(new Scenarios(arguments[0], scenario + "." + arguments[1]));
            } catch (java.lang.reflect.InvocationTargetException error) {
                Throwable cause = error.getCause();
                problem = " " + cause + " at " + Arrays.asList(cause.getStackTrace()).stream()
                    .filter(frame -> frame.getClassName().startsWith("Scenarios")).findFirst().orElse(null);
            }
            System.out.println(scenario + problem.replace('\n', ' '));
        }
        System.exit(0);
    }
}
