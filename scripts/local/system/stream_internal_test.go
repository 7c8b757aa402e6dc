package system

import (
	"testing"

	"orderonce/adapters/dynamodb"
)

// DynamoDB's stream has an INSERT for an item that was not in the table, and nothing for
// one that is written as it is.
func TestTheStreamHasAnItemThatIsDeletedAndWrittenAgain(t *testing.T) {
	t.Parallel()
	s := &stream{numbers: map[string]int{}}
	restored := []Item{{"orderId": dynamodb.Text("ORD-1"), "sk": dynamodb.Text("event#1")}}
	other := []Item{{"orderId": dynamodb.Text("ORD-2"), "sk": dynamodb.Text("event#1")}}
	s.add(restored)
	s.add(append(other, restored...))
	s.queue = nil // delivered
	s.add(other)
	if s.add(other); len(s.queue) != 0 || !s.done(restored) {
		t.Errorf("%d records after a deletion, want none", len(s.queue))
	}
	s.add(append(other, restored...))
	if len(s.queue) != 1 || s.queue[0].EventID != "3" || s.done(restored) {
		t.Errorf("records %+v after the item was written again, want one more, number 3", s.queue)
	}
}
