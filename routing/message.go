package routing

// Headroom is the number of spare bytes before the text of a [Message] that
// was just read: enough to put a ten-digit id in the place of a shorter one
// and to insert a sessionId, so that rewriting never copies the text.
const Headroom = 80

// Message is one CDP message in a buffer of its own. It has one owner at a
// time: the reader that filled it, then the Router, then exactly one outbox,
// whose writer gives the buffer back to the pool.
type Message struct {
	Buf   []byte // Buf[Start:] is the text
	Start int
}

// NewMessage returns a message that holds a copy of text, with headroom.
func NewMessage[T ~string | ~[]byte](text T) *Message {
	m := &Message{Buf: make([]byte, Headroom+len(text)), Start: Headroom}
	copy(m.Buf[Headroom:], text)
	return m
}

// Text is the message as it stands now.
func (m *Message) Text() []byte { return m.Buf[m.Start:] }
