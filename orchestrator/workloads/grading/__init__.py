"""Fixed tasks with deterministic graders: is the answer well formed, and is it right?"""

from orchestrator.workloads.grading.degenerate import degenerate
from orchestrator.workloads.grading.grader import Grade, Grader, answer_grader, grade, parse_grader

__all__ = ["Grade", "Grader", "answer_grader", "degenerate", "grade", "parse_grader"]
