package oracle

import (
	"slices"

	"orderonce/domain/order"
)

// Batch is what the oracle remembers of one batch that the deployed handler works on. It
// checks that its messages do not get in each other's way.
type Batch struct {
	oracle   *Oracle
	messages []Delivery
	parked   map[int]bool // by message
	started  map[string]bool
	finished map[order.ID]bool
}

// NewBatch reports that the handler was invoked with a batch.
func (o *Oracle) NewBatch(messages []Delivery) *Batch {
	return &Batch{
		oracle: o, messages: messages,
		parked: map[int]bool{}, started: map[string]bool{}, finished: map[order.ID]bool{},
	}
}

// Parked reports that the handler has sent a message to the dead-letter queue.
func (b *Batch) Parked(message int) { b.parked[message] = true }

// Finished reports that the handler has settled an order.
func (b *Batch) Finished(id order.ID) { b.finished[id] = true }

// Started reports that the handler begins to work on an order that is about one of these
// messages. In a FIFO group no message overtakes one that has to come back, or that could
// not be parked.
func (b *Batch) Started(id order.ID, candidates []int) {
	place := slices.IndexFunc(b.messages, func(m Delivery) bool {
		return !b.started[m.ID] && slices.Contains(candidates, m.Message)
	})
	if place < 0 {
		return
	}
	b.started[b.messages[place].ID] = true
	for _, m := range b.ahead(place) {
		sent := &b.oracle.sent[m.Message]
		r, known := b.oracle.view.Row(sent.ID)
		gone := b.parked[m.Message] || known && final(r.Status) && *b.oracle.of(r.OrderID).claimed == *sent
		if !gone {
			b.oracle.fail(NeighborsApart, id, "its work begins before message %d of its group is done", m.Message+1)
		}
	}
}

// Ended reports the handler's counts and the messages that Lambda deletes because of its
// response.
func (b *Batch) Ended(deleted []string, received, answered int) {
	o, first := b.oracle, b.oracle.sent[b.messages[0].Message].ID
	if received != answered || received != len(b.messages) {
		o.fail(AllAnswered, first, "%d messages were received, and %d answered of %d",
			received, answered, len(b.messages))
	}
	b.checkOrder(deleted)
	for _, m := range b.messages {
		id := o.sent[m.Message].ID
		switch back := !slices.Contains(deleted, m.ID); {
		case back && b.finished[id] && !b.several(id):
			o.fail(NeighborsApart, id, "message %d comes back, although its order was settled", m.Message+1)
		case !back && !b.parked[m.Message]:
			o.Acknowledged(m.Message)
		}
	}
}

// checkOrder checks that what follows a message that comes back in its group comes back
// too, and was not worked on.
func (b *Batch) checkOrder(deleted []string) {
	for place, m := range b.messages {
		for _, first := range b.ahead(place) {
			if !slices.Contains(deleted, first.ID) && (b.started[m.ID] || slices.Contains(deleted, m.ID)) {
				b.oracle.fail(NeighborsApart, b.oracle.sent[m.Message].ID,
					"message %d overtook message %d of its group, which comes back", m.Message+1, first.Message+1)
			}
		}
	}
}

func (b *Batch) ahead(place int) (all []Delivery) {
	for _, m := range b.messages[:place] {
		if m.Group != "" && m.Group == b.messages[place].Group {
			all = append(all, m)
		}
	}
	return all
}

func (b *Batch) several(id order.ID) bool {
	n := 0
	for _, m := range b.messages {
		n += int(bit(b.oracle.sent[m.Message].ID == id))
	}
	return n > 1
}
