package main
import _ "github.com/go-rod/rod"
func main() {}
