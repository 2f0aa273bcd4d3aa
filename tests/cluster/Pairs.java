import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Objects;
import java.util.StringTokenizer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.WritableComparable;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.TaskInputOutputContext;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Counts pairs of words that follow one another in a line: `Pairs IN OUT`.
 *
 * <p>So that a fault comes at a known point and not after a time, tasks wait on request. With
 * -Dpairs.gates=FOLDER a task that waits makes FOLDER/POINT-NUMBER in HDFS, and goes on once
 * FOLDER/open is there. Maps from number -Dpairs.maps on wait when they have read all; reduces wait
 * after -Dpairs.keys keys. A map that does not wait makes FOLDER/done-NUMBER.
 */
public final class Pairs extends Configured implements Tool {
    private static final long POLL_MS = 200;

    /** Two words, in the order of their text. */
    public static final class Pair implements WritableComparable<Pair> {
        private final Text first = new Text();
        private final Text second = new Text();

        @Override
        public void write(DataOutput output) throws IOException {
            first.write(output);
            second.write(output);
        }

        @Override
        public void readFields(DataInput input) throws IOException {
            first.readFields(input);
            second.readFields(input);
        }

        @Override
        public int compareTo(Pair other) {
            int order = first.compareTo(other.first);
            return order != 0 ? order : second.compareTo(other.second);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Pair && compareTo((Pair) other) == 0;
        }

        @Override
        public int hashCode() {
            return Objects.hash(first, second);
        }

        @Override
        public String toString() {
            return first + " " + second;
        }
    }

    /** Writes each pair of a line with a one. */
    public static final class PairMapper extends Mapper<LongWritable, Text, Pair, LongWritable> {
        private static final LongWritable ONE = new LongWritable(1);
        private final Pair pair = new Pair();

        @Override
        protected void map(LongWritable at, Text line, Context context)
                throws IOException, InterruptedException {
            StringTokenizer words = new StringTokenizer(line.toString());
            if (words.hasMoreTokens()) {
                pair.second.set(words.nextToken());
            }
            while (words.hasMoreTokens()) {
                pair.first.set(pair.second);
                pair.second.set(words.nextToken());
                context.write(pair, ONE);
            }
        }

        @Override
        protected void cleanup(Context context) throws IOException, InterruptedException {
            int number = context.getTaskAttemptID().getTaskID().getId();
            boolean waits = number >= context.getConfiguration().getInt("pairs.maps", Integer.MAX_VALUE);
            pass(context, waits ? "map" : "done", waits);
        }
    }

    /** Adds up counts; also the combiner. */
    public static class Sum extends Reducer<Pair, LongWritable, Pair, LongWritable> {
        @Override
        protected void reduce(Pair pair, Iterable<LongWritable> counts, Context context)
                throws IOException, InterruptedException {
            long sum = 0;
            for (LongWritable count : counts) {
                sum += count.get();
            }
            context.write(pair, new LongWritable(sum));
        }
    }

    /** The reducer: adds up counts, and waits after some keys. */
    public static final class SumAndWait extends Sum {
        private long keys;

        @Override
        protected void reduce(Pair pair, Iterable<LongWritable> counts, Context context)
                throws IOException, InterruptedException {
            super.reduce(pair, counts, context);
            keys++;
            if (keys == context.getConfiguration().getLong("pairs.keys", -1)) {
                pass(context, "reduce", true);
            }
        }
    }

    /** Says that a task has come to a point, and waits there if it should. */
    private static void pass(TaskInputOutputContext<?, ?, ?, ?> context, String point, boolean waits)
            throws IOException, InterruptedException {
        String gates = context.getConfiguration().get("pairs.gates");
        if (gates == null) {
            return;
        }
        FileSystem files = FileSystem.get(context.getConfiguration());
        int number = context.getTaskAttemptID().getTaskID().getId();
        files.mkdirs(new Path(gates, point + "-" + number));
        while (waits && !files.exists(new Path(gates, "open"))) {
            Thread.sleep(POLL_MS);
            // It is no task that hangs.
            context.progress();
        }
    }

    @Override
    public int run(String[] words) throws Exception {
        Job job = Job.getInstance(getConf(), "pairs");
        job.setJarByClass(Pairs.class);
        job.setMapperClass(PairMapper.class);
        job.setCombinerClass(Sum.class);
        job.setReducerClass(SumAndWait.class);
        job.setOutputKeyClass(Pair.class);
        job.setOutputValueClass(LongWritable.class);
        FileInputFormat.addInputPath(job, new Path(words[0]));
        FileOutputFormat.setOutputPath(job, new Path(words[1]));
        return job.waitForCompletion(true) ? 0 : 1;
    }

    public static void main(String[] words) throws Exception {
        System.exit(ToolRunner.run(new Configuration(), new Pairs(), words));
    }
}
