"""確かめるための道具: 形と値を比べ、違いを日本語で伝える。"""

import torch


def expect_shape(x: torch.Tensor, shape: tuple[int, ...], name: str) -> None:
    """x の形が shape でなければ AssertionError。"""
    if tuple(x.shape) != tuple(shape):
        raise AssertionError(f"{name} の形が違います。期待: {tuple(shape)}、実際: {tuple(x.shape)}")


def expect_close(
    actual, expected, *, rtol: float = 1e-5, atol: float = 1e-6, hint: str = ""
) -> None:
    """actual と expected が誤差の範囲で等しくなければ AssertionError。hint は考えられる原因。"""
    actual, expected = torch.as_tensor(actual), torch.as_tensor(expected)
    expect_shape(actual, tuple(expected.shape), "値")
    actual, expected = actual.double(), expected.double()
    wrong = ~torch.isclose(actual, expected, rtol=rtol, atol=atol)
    if wrong.any():
        where = tuple(wrong.nonzero()[0].tolist())
        raise AssertionError(
            f"値が違います。最初に違う位置: {where}、期待: {expected[where].item():.6g}、"
            f"実際: {actual[where].item():.6g}。{hint}"
        )
