package system

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/sqs/sqstest"
)

const (
	streamBatch = 100                   // records of one invocation
	streamPause = 20 * time.Millisecond // at least, between two reads of the table
	longPause   = 2 * time.Second       // at most, because a person waits for the events
)

func (s *System) startBus(context.Context) (err error) {
	if s.Options.Publish == "" {
		return nil
	}
	options := eventbridgetest.Options{Bus: EventBus, Refuse: s.Options.RefuseEvent}
	options.Target = s.toReceipts
	if s.Bus, err = eventbridgetest.Serve(options); err == nil {
		s.closers = append(s.closers, s.Bus.Close)
	}
	return err
}

func (s *System) startStream(ctx context.Context) error {
	if s.Publish != nil {
		s.stream = &stream{system: s, numbers: map[string]int{}}
		s.background(ctx, s.stream.run)
	}
	return nil
}

// Published waits until the publish function has published or skipped every event item
// that the table has now. It returns lambdatest.ErrExited at once when the function exits
// by itself.
func (s *System) Published(ctx context.Context) error {
	if s.stream == nil {
		return nil
	}
	ctx, cancel := s.Publish.UntilExit(ctx)
	defer cancel()
	want, err := s.stream.items(ctx)
	if err != nil {
		return err
	}
	return Until(ctx, soon, func() (bool, error) { return s.stream.done(want), nil })
}

// ExpireEvents makes the stream forget what is not published, as DynamoDB does after 24
// hours.
func (s *System) ExpireEvents() {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	s.stream.queue = nil
}

// stream is the table's stream with its event source mapping: one shard, and one
// invocation at a time. It repeats a batch until the function has done all of it, as
// Lambda does for a day, from the record that the function reports
// (https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html).
//
// The engine's own stream makes writes slower with each record, see
// System.startEngine. So this one reads the table again and again, and a record
// is an event item that was not in the table at the read before.
type stream struct {
	system *System

	mu      sync.Mutex
	numbers map[string]int               // of the items that were read, by key: 1 for the first
	present map[string]bool              // at the latest read
	last    int                          // number
	queue   []events.DynamoDBEventRecord // that are not done, in order
}

// run reads and delivers until the context ends. It returns the first error of the table.
func (s *stream) run(ctx context.Context) error {
	for ctx.Err() == nil {
		start := time.Now()
		items, err := s.items(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the system was closed
		}
		if err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		s.add(items)
		pause := 10 * time.Since(start) // a large table must not keep this machine busy
		for s.deliver(ctx) {
		}
		wait := time.NewTimer(min(max(streamPause, pause), longPause))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
	}
	return nil
}

// items returns the event items of the table. A scan returns those of an order together
// and in order.
func (s *stream) items(ctx context.Context) (items []Item, err error) {
	for item, err := range s.system.Items(ctx, s.system.Options.Table) {
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(Text(item, "sk"), "event#") {
			items = append(items, item)
		}
	}
	return items, nil
}

func itemKey(i Item) string { return Text(i, "orderId") + " " + Text(i, "sk") }

// add appends the items that were not in the table at the read before to the queue.
func (s *stream) add(items []Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.present
	s.present = map[string]bool{}
	for _, item := range items {
		if s.present[itemKey(item)] = true; before[itemKey(item)] {
			continue
		}
		s.last++
		n := s.last
		s.numbers[itemKey(item)] = n
		s.queue = append(s.queue, events.DynamoDBEventRecord{
			EventID: strconv.Itoa(n), EventName: string(events.DynamoDBOperationTypeInsert),
			EventSource: "aws:dynamodb", EventVersion: "1.1", AWSRegion: sqstest.Region,
			Change: events.DynamoDBStreamRecord{
				Keys:     streamAttributes(keyOf(item)),
				NewImage: streamAttributes(item), SequenceNumber: fmt.Sprintf("%021d", n),
				StreamViewType: string(events.DynamoDBStreamViewTypeNewImage),
			},
		})
	}
}

// streamAttributes converts the strings and numbers of an item. Event items have no
// others.
func streamAttributes(item Item) map[string]events.DynamoDBAttributeValue {
	attributes := map[string]events.DynamoDBAttributeValue{}
	for name, value := range item {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			attributes[name] = events.NewStringAttribute(v.Value)
		case *types.AttributeValueMemberN:
			attributes[name] = events.NewNumberAttribute(v.Value)
		}
	}
	return attributes
}

// deliver invokes the function with the next batch. It reports whether another batch may
// follow at once: records are left, and this one made progress.
func (s *stream) deliver(ctx context.Context) bool {
	s.mu.Lock()
	batch := slices.Clone(s.queue[:min(len(s.queue), streamBatch)])
	s.mu.Unlock()
	if len(batch) == 0 || ctx.Err() != nil {
		return false
	}
	payload, err := json.Marshal(events.DynamoDBEvent{Records: batch})
	if err != nil {
		return false
	}
	var response events.DynamoDBEventResponse
	answer, err := s.system.Publish.Invoke(ctx, payload)
	if err != nil || json.Unmarshal(answer, &response) != nil {
		return false
	}
	// A failure that names no record of the batch fails all of it.
	done := len(batch)
	for _, failure := range response.BatchItemFailures {
		done = min(done, max(0, slices.IndexFunc(batch, func(r events.DynamoDBEventRecord) bool {
			return r.Change.SequenceNumber == failure.ItemIdentifier
		})))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = s.queue[min(done, len(s.queue)):] // they may have expired meanwhile
	return done > 0 && len(s.queue) > 0
}

func (s *stream) done(items []Item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delivered := s.last - len(s.queue)
	return !slices.ContainsFunc(items, func(i Item) bool {
		n := s.numbers[itemKey(i)]
		return n == 0 || n > delivered
	})
}
