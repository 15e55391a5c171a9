"""``python -m aimle`` is the program `aimle`, also under torchrun."""

from aimle.program.launch import main

if __name__ == "__main__":
    main()
